internal import CFlowSystem
internal import Glibc

extension Sandbox {
  /// The folder for temporary files that the process has; nil for the usual one.
  // Unsafe: written while the process has one thread.
  package private(set) nonisolated(unsafe) static var folder: ByteString?

  /// The folder that `makeFolder` has made, which a sandbox that couldn't be entered hasn't used.
  // Unsafe: see above.
  private nonisolated(unsafe) static var made: ByteString?

  /// Makes a folder for temporary files, in that of `TMPDIR`, which is removed when the process ends, however it ends.
  /// The process must have one thread.
  package static func makeFolder() throws(SystemError) -> ByteString {
    if let made { return made }
    let path = try Folders.makeTemporary()
    // Another process removes it.
    TemporaryPaths.shared.forget(path)
    let problem = path.withCString { flowsystem_remove_at_end($0) } ?? EINVAL
    if problem != 0 { throw SystemError("make folder", path, problem) }
    made = path
    return path
  }

  /// Makes a folder that of `TMPDIR`, for this process and its programs.
  package static func useFolder(_ path: ByteString) {
    _ = path.withCString { setenv("TMPDIR", $0, 1) }
    folder = path
  }
}
