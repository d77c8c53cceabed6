internal import FlowEngine
internal import Glibc

/// A regular file that is sent as a body, read while it is sent.
final class HTTPUpload {
  private let descriptor: Int32
  /// The size when it was opened; no more is sent.
  let size: Int64
  private var position: Int64 = 0

  /// Opens the file at a path.
  init(_ path: ByteString) throws(FlowError) {
    let opened = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    guard let opened, opened >= 0 else { throw Self.failure(path, errno) }
    var status = stat()
    guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(opened)
      // A pipe would block the loop.
      throw FlowError(.error, "can't read '\(path)': not a regular file")
    }
    descriptor = opened
    size = Int64(status.st_size)
  }

  deinit { close(descriptor) }

  /// Reads the next bytes; 0 at the end, nil for an error.
  func read(_ buffer: UnsafeMutableRawPointer, _ room: Int) -> Int? {
    while true {
      let count = pread(descriptor, buffer, room, off_t(position))
      if count >= 0 {
        position += Int64(count)
        return count
      }
      if errno != EINTR { return nil }
    }
  }

  /// Continues at a position.
  func seek(_ position: Int64) { self.position = position }

  /// The error of a path that isn't a readable regular file; nil for one.
  static func problem(_ path: ByteString) -> FlowError? {
    do throws(FlowError) {
      _ = try HTTPUpload(path)
      return nil
    } catch {
      return error
    }
  }

  private static func failure(_ path: ByteString, _ number: Int32) -> FlowError {
    let reason = strerror(number).map { ByteString(cString: $0) } ?? "error \(number)"
    return FlowError(.error, "can't read '\(path)': \(reason)", code: Int64(number))
  }
}
