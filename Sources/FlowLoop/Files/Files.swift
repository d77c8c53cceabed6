import Glibc

/// Reads and writes whole files, blocking; for threads other than the loop's.
package enum Files {
  /// How much is read or written between two checks for a cancellation.
  private static let chunk = 1 << 20
  /// How long a wait for a pipe lasts before the next check, in milliseconds.
  private static let patience: Int32 = 50

  /// The content of a file.
  package static func read(
    _ path: ByteString, _ cancellation: Cancellation
  ) throws(SystemError) -> ByteString {
    // A pipe must not block the thread forever: it is opened without waiting for its other end.
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    guard let descriptor else { throw nulError(path) }
    guard descriptor >= 0 else { throw failure("read", path, errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure("read", path, errno) }
    let isRegular = status.st_mode & S_IFMT == S_IFREG
    var content: [UInt8] = []
    // The size is only a hint: it is 0 for files of /proc, and other files grow. One byte more
    // detects the end.
    var room = isRegular ? min(max(Int(status.st_size), 0) + 1, chunk) : 1 << 16
    if isRegular, status.st_size < 1 << 30 { content.reserveCapacity(Int(status.st_size)) }
    if room < 1 << 12 { room = 1 << 12 }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      if cancellation.isRequested { throw SystemError(code: ECANCELED) }
      if !isRegular, !waitForInput(descriptor) { continue }
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count == 0 { return ByteString(content) }
      if count > 0 {
        content.append(contentsOf: buffer[..<count])
      } else if errno != EINTR, errno != EAGAIN {
        throw failure("read", path, errno)
      }
    }
  }

  static func waitForInput(_ descriptor: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, patience) > 0
  }

  /// Writes a file with this content, and replaces an existing one.
  package static func write(
    _ content: ByteString, to path: ByteString, _ cancellation: Cancellation
  ) throws(SystemError) {
    let (target, mode) = try target(of: path)
    let (temporary, descriptor) = try makeTemporary(beside: target, for: path)
    var problem: Int32 = 0
    if let mode, fchmod(descriptor, mode) != 0 { problem = errno }
    if problem == 0 { problem = writeAll(content, descriptor, cancellation) }
    if problem == 0, fsync(descriptor) != 0 { problem = errno }
    // A full disk, or a network, may report its error only here.
    if close(descriptor) != 0, problem == 0, errno != EINTR { problem = errno }
    if problem == 0, cancellation.isRequested { problem = ECANCELED }
    if problem == 0 {
      let renamed = temporary.withCString { from in target.withCString { rename(from, $0) } }
      if renamed != .some(.some(0)) { problem = errno }
    }
    if problem != 0 {
      _ = temporary.withCString { unlink($0) }
      if cancellation.isRequested { throw SystemError(code: ECANCELED) }
      throw failure("write", path, problem)
    }
    syncFolder(of: target)
  }

  /// The target of a path after following symbolic links, and its permissions if it exists.
  private static func target(
    of path: ByteString
  ) throws(SystemError) -> (ByteString, mode_t?) {
    var status = stat()
    guard let found = path.withCString({ stat($0, &status) }) else { throw nulError(path) }
    guard found == 0 else {
      guard errno == ENOENT else { throw failure("write", path, errno) }
      // Also for a link without a target: the link itself is replaced then.
      return (path, nil)
    }
    // Renaming would replace a device with a file.
    if status.st_mode & S_IFMT == S_IFDIR { throw failure("write", path, EISDIR) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw SystemError("can't write '\(path)': not a regular file")
    }
    // Renaming only needs the folder's permissions; a write-protected file must stay.
    if let allowed = path.withCString({ access($0, W_OK) }), allowed != 0 {
      throw failure("write", path, errno)
    }
    let real = path.withCString { name -> ByteString? in
      guard let resolved = realpath(name, nil) else { return nil }
      defer { free(resolved) }
      return ByteString(Array(UnsafeRawBufferPointer(start: resolved, count: strlen(resolved))))
    }
    guard case .some(.some(let resolved)) = real else { throw failure("write", path, errno) }
    return (resolved, status.st_mode & 0o7777)
  }

  private static func makeTemporary(
    beside target: ByteString, for path: ByteString
  ) throws(SystemError) -> (ByteString, Int32) {
    let folder = folder(of: target)
    // The name isn't derived from the file's own, which may have the maximum length already.
    for _ in 0..<100 {
      let number = String(UInt64.random(in: 0 ... .max), radix: 36)
      let name = folder + ByteString(".flowlua-\(number).tmp")
      // 0666: the system applies the umask, as for any new file.
      let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
      guard let descriptor = name.withCString({ open($0, flags, 0o666) }) else {
        throw nulError(path)
      }
      if descriptor >= 0 { return (name, descriptor) }
      if errno != EEXIST { throw failure("write", path, errno) }
    }
    throw failure("write", path, EEXIST)
  }

  private static func writeAll(
    _ content: ByteString, _ descriptor: Int32, _ cancellation: Cancellation
  ) -> Int32 {
    content.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        if cancellation.isRequested { return ECANCELED }
        let part = UnsafeBufferPointer(rebasing: rest.prefix(chunk))
        let count = Glibc.write(descriptor, part.baseAddress, part.count)
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if count < 0, errno != EINTR {
          return errno
        }
      }
      return 0
    }
  }

  /// The folder of a path with its last slash; empty for the working directory.
  private static func folder(of path: ByteString) -> ByteString {
    guard let slash = path.bytes.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    return ByteString(Array(path.bytes[...slash]))
  }

  /// Flushes the new name to the disk too. Not every file system supports that; the content is safe
  /// anyway.
  private static func syncFolder(of path: ByteString) {
    let folder = folder(of: path)
    let opened = (folder.isEmpty ? "." : folder).withCString {
      open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }
    guard let descriptor = opened, descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }

  static func failure(_ verb: String, _ path: ByteString, _ number: Int32) -> SystemError {
    SystemError("can't \(verb) '\(path)': \(systemMessage(number))", code: number)
  }

  static func nulError(_ path: ByteString) -> SystemError {
    return SystemError("the path '\(path.escapingNUL)' has a NUL byte in it")
  }
}
