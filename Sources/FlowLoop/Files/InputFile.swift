internal import FlowSystem

/// A file that is open for reading; it is closed in any case.
struct InputFile: ~Copyable {
  let descriptor: Int32
  /// The status of the file when it was opened.
  let status: stat
  private let path: ByteString
  private let verb: String

  /// Opens a file; error messages name `verb`.
  init(_ path: ByteString, verb: String) throws(SystemError) {
    // A pipe must not block the thread forever: it is opened without waiting for its other end.
    let opened = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    guard let opened else { throw .nul(in: path) }
    guard opened >= 0 else { throw SystemError(verb, path, errno, isWritten: false) }
    var status = stat()
    guard fstat(opened, &status) == 0 else {
      let number = errno
      close(opened)
      throw SystemError(verb, path, number)
    }
    descriptor = opened
    self.status = status
    self.path = path
    self.verb = verb
  }

  deinit { close(descriptor) }

  /// Whether its size is known and reading doesn't wait for another program.
  var isRegular: Bool { FileKind(mode: status.st_mode) == .file }

  /// The status of the file now; nil without one.
  func currentStatus() -> stat? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? status : nil
  }

  /// Copies the content of a regular file; its holes stay holes. Returns an `errno`, or 0.
  func copy(to target: Int32, _ cancellation: Cancellation? = nil) -> Int32 {
    var place: Int64 = 0
    while true {
      var hole: Int64 = 0
      guard flowsystem_next_part(descriptor, place, &place, &hole) else {
        guard let size = currentStatus()?.st_size,
          ftruncate(target, max(size, off_t(place))) == 0
        else { return errno }
        return 0
      }
      guard lseek(descriptor, off_t(place), SEEK_SET) == place,
        lseek(target, off_t(place), SEEK_SET) == place
      else { return errno }
      while hole < 0 || place < hole {
        if cancellation?.isRequested == true { return ECANCELED }
        let left = hole < 0 ? Self.most : min(Self.most, Int(hole - place))
        let count = flowsystem_copy_range(descriptor, target, left)
        // The end, also of a file that has become shorter.
        if count == 0 { return 0 }
        if count > 0 { place += Int64(count) } else if errno != EINTR { return errno }
      }
    }
  }

  /// How many bytes are copied between two checks for a stop.
  private static let most = 8 << 20

  /// Reads what is there, up to the size of the buffer; returns the number of bytes, 0 at the end.
  func read(
    into buffer: UnsafeMutableRawBufferPointer, _ cancellation: Cancellation
  ) throws(SystemError) -> Int {
    while true {
      try cancellation.check()
      if !isRegular {
        cancellation.wait(for: descriptor, writing: false)
        try cancellation.check()
      }
      let count = FlowSystem.read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      if errno != EINTR, errno != EAGAIN { throw SystemError(verb, path, errno) }
    }
  }
}
