internal import FlowSystem

/// Makes folders, and gives files other names.
package enum Folders {
  /// Makes a folder, and those on the way to it that don't exist; an existing one is left as it is.
  /// Blocks.
  package static func make(_ path: ByteString) throws(SystemError) {
    let slash = UInt8(ascii: "/")
    let bare = path.withoutTrailingSlashes
    // Usually only the last one is missing.
    if try makeOne(bare, for: path) { return }
    for index in bare.bytes.indices.dropFirst() where bare.bytes[index] == slash {
      _ = try makeOne(ByteString(bare.bytes[..<index]), for: path)
    }
    if try !makeOne(bare, for: path) { throw SystemError("make folder", path, ENOENT) }
  }

  /// Makes a folder unless it exists; returns false when the folder above it doesn't exist.
  private static func makeOne(
    _ folder: ByteString, for path: ByteString
  ) throws(SystemError) -> Bool {
    guard let made = folder.withCString({ mkdir($0, 0o777) }) else { throw .nul(in: path) }
    if made == 0 { return true }
    let number = errno
    if number == ENOENT { return false }
    // A folder may exist, and a system that can't be written to may report something else.
    var status = stat()
    let isFolder =
      folder.withCString { stat($0, &status) } == 0 && FileKind(mode: status.st_mode) == .directory
    if isFolder { return true }
    throw SystemError("make folder", path, number)
  }

  /// Gives a file or folder another path in the same file system, in one step; a file there is
  /// replaced. Blocks.
  package static func rename(_ path: ByteString, to target: ByteString) throws(SystemError) {
    guard
      let result = path.withCString({ from in target.withCString { FlowSystem.rename(from, $0) } })
    else { throw .nul(in: path) }
    guard let result else { throw .nul(in: target) }
    if result != 0 { throw SystemError("rename", path, to: target, errno) }
  }

  /// The folder for temporary files: the environment variable `TMPDIR` names it, or it is `/tmp`.
  static var temporary: ByteString { environment("TMPDIR") ?? "/tmp" }

  /// Makes a new folder for temporary files, which only this user can open: in the folder of the
  /// environment variable `TMPDIR`, or in `/tmp`. Blocks.
  ///
  /// - Returns: Its path. `TemporaryPaths` removes it at the latest when the process exits.
  package static func makeTemporary() throws(SystemError) -> ByteString {
    let template = temporary.joined(with: "flowlua-XXXXXX".bytes[...])
    var bytes = template.bytes.map { CChar(bitPattern: $0) } + [0]
    let made = bytes.withUnsafeMutableBufferPointer { buffer in
      buffer.baseAddress.flatMap { mkdtemp($0) } != nil
    }
    guard made else { throw SystemError("make folder", template, errno) }
    let path = ByteString(bytes.dropLast().map { UInt8(bitPattern: $0) })
    TemporaryPaths.shared.insert(path, isFolder: true)
    return path
  }
}

extension Sandbox {
  /// The folder for temporary files that the process has; nil for the usual one.
  // Unsafe: written while the process has one thread.
  package private(set) nonisolated(unsafe) static var folder: ByteString?

  /// The folder that `makeFolder` has made, which a sandbox that couldn't be entered hasn't used.
  // Unsafe: see above.
  private nonisolated(unsafe) static var made: ByteString?

  /// Makes a folder for temporary files, in the folder of `TMPDIR`, which is removed when the process ends, however
  /// it ends. The process must have one thread.
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

  /// Lets `TMPDIR` name a folder, for this process and its programs.
  package static func useFolder(_ path: ByteString) {
    _ = path.withCString { setenv("TMPDIR" as String, $0, 1) }
    folder = path
  }
}
