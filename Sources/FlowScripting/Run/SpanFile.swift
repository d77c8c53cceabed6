package import FlowEngine
internal import Glibc

/// Files of spans. A wrong path can't cost another file: only an empty one, or one that has spans, is replaced.
package enum SpanFile {
  /// Why spans don't replace what is at a path; nil if they may, or if there is nothing. May be called on any
  /// thread, and may block.
  package static func problem(replacing path: ByteString) -> ByteString? {
    var status = stat()
    guard path.withCString({ stat($0, &status) }) == 0,
      status.st_mode & S_IFMT == S_IFREG,
      status.st_size > 0, start(of: path) != RunOTLP.start
    else { return nil }
    return "'\(path)' exists and isn't a file of spans; it isn't replaced"
  }

  /// The first bytes of a file, as many as each file of spans has in common; nil if it can't be read.
  private static func start(of path: ByteString) -> [UInt8]? {
    guard let file = path.withCString({ open($0, O_RDONLY | O_CLOEXEC) }), file >= 0 else {
      return nil
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: RunOTLP.start.count)
    let count = bytes.count
    return bytes.withUnsafeMutableBytes { pread(file, $0.baseAddress, count, 0) } == count
      ? bytes : nil
  }
}
