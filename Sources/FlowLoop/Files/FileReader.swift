import Glibc

/// Reads a file piece by piece, blocking; for threads other than the loop's.
///
/// The file is opened by the first read, and closed when the reader is released.
// One thread uses it at a time: the loop's makes and releases it, and each read on a helper thread begins
// after the one before.
package final class FileReader: @unchecked Sendable {
  private let path: ByteString
  private var descriptor: Int32 = -1

  package init(_ path: ByteString) {
    self.path = path
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// The next piece of the file, of at most `size` bytes; empty at the end.
  package func read(_ size: Int, _ cancellation: Cancellation) throws(SystemError) -> ByteString {
    if descriptor < 0 {
      // As for whole files: a pipe must not block the thread forever.
      guard let opened = path.withCString({ open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }) else {
        throw Files.nulError(path)
      }
      guard opened >= 0 else { throw Files.failure("read", path, errno) }
      descriptor = opened
    }
    while true {
      if cancellation.isRequested { throw SystemError(code: ECANCELED) }
      var failure: Int32 = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
        let read = Glibc.read(descriptor, buffer.baseAddress, size)
        failure = read < 0 ? errno : 0
        count = max(read, 0)
      }
      switch failure {
      case 0: return ByteString(bytes)
      case EINTR: continue
      case EAGAIN: _ = Files.waitForInput(descriptor)
      default: throw Files.failure("read", path, failure)
      }
    }
  }
}
