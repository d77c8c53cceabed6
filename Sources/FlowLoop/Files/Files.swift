internal import FlowSystem

/// Reads, writes and copies whole files, blocking; for threads other than the loop's.
package enum Files {
  /// How much is read or written between two checks for a cancellation.
  private static let chunk = 1 << 20
  /// The size of the largest file that is read, in bytes: no memory holds a larger one.
  private static let largest = 1 << 40

  /// The content of a file, which counts in `memory`.
  package static func read(
    _ path: ByteString, in memory: CollectedBytes? = nil, _ cancellation: Cancellation
  ) throws(SystemError) -> ByteString {
    let file = try InputFile(path, verb: "read")
    let size = file.isRegular ? max(Int(file.status.st_size), 0) : 0
    let limit = min(memory?.limit ?? largest, largest)
    if size > limit { throw SystemError("read", path, EFBIG) }
    var content: [UInt8] = []
    // The size is only a hint: it is 0 for files of /proc, and other files grow. One byte more
    // detects the end.
    let room = max(file.isRegular ? min(size, chunk - 1) + 1 : 1 << 16, 1 << 12)
    if size < 1 << 30 {
      try memory?.add(size)
      content.reserveCapacity(size)
    }
    var counted = content.capacity
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try file.read(into: buffer, cancellation)
      if count == 0 { return ByteString(content) }
      content.append(contentsOf: buffer[..<count])
      if content.count > limit { throw SystemError("read", path, EFBIG) }
      if content.capacity > counted {
        try memory?.add(content.capacity - counted)
        counted = content.capacity
      }
    }
  }

  /// Writes a file with this content, and replaces an existing one in one step. A link stays one, unless it isn't
  /// followed.
  package static func write(
    _ content: ByteString, to path: ByteString, _ cancellation: Cancellation,
    followsLink: Bool = true
  ) throws(SystemError) {
    let file = try AtomicFile(replacing: path, followsLink: followsLink) {
      SystemError("write", path, $0)
    }
    try writeAll(content.bytes[...], to: file.descriptor, cancellation) {
      SystemError("write", path, $0)
    }
    try file.commit(cancellation)
  }

  /// Adds content at the end of a file, which is made if it doesn't exist; it may also be a pipe or a
  /// device. Bytes that were added before an error or a cancellation stay.
  package static func append(
    _ content: ByteString, to path: ByteString, _ cancellation: Cancellation
  ) throws(SystemError) {
    let flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
    let opened = path.withCString { open($0, flags, 0o666) }
    guard let descriptor = opened else { throw .nul(in: path) }
    guard descriptor >= 0 else { throw SystemError("write", path, errno) }
    do throws(SystemError) {
      try writeAll(content.bytes[...], to: descriptor, cancellation) {
        SystemError("write", path, $0)
      }
    } catch {
      close(descriptor)
      throw error
    }
    // A full disk, or a network, may report its error only here.
    if close(descriptor) != 0, errno != EINTR { throw SystemError("write", path, errno) }
  }

  /// Copies the content and the permissions of a file; the copy replaces an existing file in one
  /// step.
  package static func copy(
    _ path: ByteString, to target: ByteString, _ cancellation: Cancellation
  ) throws(SystemError) {
    let failure: (Int32) -> SystemError = { SystemError("copy", path, to: target, $0) }
    let source = try InputFile(path, verb: "copy")
    if FileKind(mode: source.status.st_mode) == .directory {
      throw SystemError("copy", path, EISDIR)
    }
    // The identity of another user isn't passed on.
    let copy = try AtomicFile(
      replacing: target, mode: source.status.st_mode & 0o777, failure: failure)
    try copyContent(of: source, to: copy.descriptor, cancellation, failure)
    try copy.commit(cancellation)
  }

  /// Copies a content.
  private static func copyContent(
    of source: borrowing InputFile, to target: Int32, _ cancellation: Cancellation,
    _ failure: (Int32) -> SystemError
  ) throws(SystemError) {
    // Files of /proc have no size, and look empty to the kernel's way of copying.
    guard source.isRegular, source.status.st_size > 0 else {
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunk, alignment: 16)
      defer { buffer.deallocate() }
      while case let count = try source.read(into: buffer, cancellation), count > 0 {
        try writeAll(buffer[..<count], to: target, cancellation, failure)
      }
      return
    }
    let problem = source.copy(to: target, cancellation)
    if problem == 0 { return }
    if cancellation.isRequested { throw .cancelled }
    throw failure(problem)
  }

  fileprivate static func writeAll(
    _ content: some RandomAccessCollection<UInt8>, to descriptor: Int32,
    _ cancellation: Cancellation, _ failure: (Int32) -> SystemError
  ) throws(SystemError) {
    let problem =
      content.withContiguousStorageIfAvailable { bytes in
        writeAll(UnsafeRawBufferPointer(bytes), descriptor, cancellation)
      } ?? EINVAL
    if problem == 0 { return }
    if cancellation.isRequested { throw .cancelled }
    throw failure(problem)
  }

  private static func writeAll(
    _ content: UnsafeRawBufferPointer, _ descriptor: Int32, _ cancellation: Cancellation
  ) -> Int32 {
    var rest = content[...]
    while !rest.isEmpty {
      if cancellation.isRequested { return ECANCELED }
      let part = UnsafeRawBufferPointer(rebasing: rest.prefix(chunk))
      let count = FlowSystem.write(descriptor, part.baseAddress, part.count)
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if count < 0, errno == EAGAIN {
        // A pipe or a terminal that takes nothing now.
        cancellation.wait(for: descriptor, writing: true)
      } else if count < 0, errno != EINTR {
        return errno
      }
    }
    return 0
  }
}

/// A new file that replaces another one in one step, as `Files.write` does, and is written in parts. Without a
/// `commit` the other one stays.
package final class FileReplacement {
  private let path: ByteString
  private let file: AtomicFile

  /// Makes the new file, beside the other one.
  ///
  /// - Parameter path: The path of the file to replace or make.
  /// - Throws: A `SystemError` when it can't be replaced.
  package init(of path: ByteString) throws(SystemError) {
    self.path = path
    file = try AtomicFile(replacing: path) { SystemError("write", path, $0) }
  }

  /// Adds content at the end of the new file.
  ///
  /// - Parameter content: The content.
  /// - Throws: A `SystemError` when it can't be written.
  package func append(_ content: ByteString) throws(SystemError) {
    try Files.writeAll(content.bytes[...], to: file.descriptor, Cancellation()) {
      SystemError("write", path, $0)
    }
  }

  /// Gives the new file the name of the other one, once it is on the disk.
  ///
  /// - Throws: A `SystemError` when that fails; the other one stays then.
  package func commit() throws(SystemError) { try file.commit(Cancellation()) }
}

/// Errors about files.
extension SystemError {
  /// `can't read 'notes.txt': No such file or directory`. `isWritten` says which permission may be missing; by default
  /// the verb does.
  package init(_ verb: String, _ path: ByteString, _ number: Int32, isWritten: Bool? = nil) {
    let isReading = ["read", "stat", "list", "watch"].contains(verb)
    let hint = Sandbox.hint(number, isWritten: isWritten ?? !isReading)
    self.init("can't \(verb) '\(path.escapingNUL)': \(systemMessage(number))\(hint)", code: number)
  }

  /// `can't copy 'a' to 'b': No space left on device`.
  init(_ verb: String, _ path: ByteString, to target: ByteString, _ number: Int32) {
    let hint = Sandbox.hint(number, isWritten: true)
    self.init(
      "can't \(verb) '\(path)' to '\(target)': \(systemMessage(number))\(hint)", code: number)
  }

  /// The error of a path that the system would take for a shorter one.
  static func nul(in path: ByteString) -> SystemError {
    SystemError("the path '\(path.escapingNUL)' has a NUL byte in it", code: EINVAL)
  }

  /// The error of work that was cancelled.
  static var cancelled: SystemError { SystemError(code: ECANCELED) }

  /// The name of the system's error, such as `ENOENT`; nil without a number or for an unknown one.
  package var name: ByteString? {
    guard let code, let name = flowsystem_error_name(code) else { return nil }
    return ByteString(String(cString: name))
  }
}

extension Cancellation {
  /// Throws if the work was cancelled.
  func check() throws(SystemError) {
    if isRequested { throw .cancelled }
  }
}

/// Reads a file piece by piece, blocking; for threads other than the loop's.
///
/// The file is opened by the first read, and closed when the reader is released.
// One thread uses it at a time: the loop's makes and releases it, and each read on a helper thread begins
// after the one before.
package final class FileReader: @unchecked Sendable {
  private let path: ByteString
  private var file: InputFile?

  package init(_ path: ByteString) {
    self.path = path
  }

  /// The next piece of the file, of at most `size` bytes; empty at the end.
  package func read(_ size: Int, _ cancellation: Cancellation) throws(SystemError) -> ByteString {
    if file == nil { file = try InputFile(path, verb: "read") }
    var failure: SystemError?
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      do throws(SystemError) {
        count = try file?.read(into: UnsafeMutableRawBufferPointer(buffer), cancellation) ?? 0
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return ByteString(bytes)
  }
}
