internal import CFlowSystem
internal import FlowEngine
internal import Glibc

/// Files that the program itself reads and writes.
enum TextFile {
  /// The contents of a file; nil, with `errno`, if it can't be read.
  static func read(_ path: ByteString) -> [UInt8]? {
    let name = path.bytes.map { CChar(bitPattern: $0) } + [0]
    let file = open(name, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var count = 0
    repeat {
      count = Glibc.read(file, &buffer, buffer.count)
      if count > 0 { content += buffer[..<count] }
    } while count > 0 || count < 0 && errno == EINTR
    let problem = errno
    close(file)
    errno = problem
    return count < 0 ? nil : content
  }

  /// Replaces the contents of a file; returns the reason of a failure, nil for success.
  static func write(_ text: ByteString, to path: ByteString) -> String? {
    let name = path.bytes.map { CChar(bitPattern: $0) } + [0]
    let isWritten = text.withUnsafeBytes { bytes in
      flowsystem_write_file(name, bytes.baseAddress, bytes.count)
    }
    return isWritten ? nil : String(cString: strerror(errno))
  }
}
