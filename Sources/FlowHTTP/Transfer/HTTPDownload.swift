internal import FlowEngine
internal import FlowSystem

/// A file that gets a body: it is written beside its place, and renamed when it is complete.
///
/// One that can be continued has a fixed name, `FILE.part`, and a second file, `FILE.part.tag`, with
/// the version of the content: a part of another version is useless.
///
/// Writing happens on the loop, because a helper thread would have to copy every chunk: the system
/// takes the bytes into its cache.
final class HTTPDownload {
  let path: ByteString
  private let resumes: Bool
  private let temporary: ByteString
  private var descriptor: Int32 = -1
  private var isDevice = false
  /// The number of bytes in the file.
  private(set) var size: Int64 = 0

  init(_ path: ByteString, resumes: Bool) {
    self.path = path
    self.resumes = resumes
    if resumes {
      temporary = path + ".part"
    } else {
      let slash = path.bytes.lastIndex(of: UInt8(ascii: "/"))
      let folder = ByteString(path.bytes[..<(slash.map { $0 + 1 } ?? 0)])
      // Not derived from the file's own name, which may have the maximum length already.
      let number = String(UInt64.random(in: 0 ... .max), radix: 36)
      temporary = folder + ByteString(".flowlua-\(number).tmp")
    }
  }

  deinit { discard() }

  private var tagPath: ByteString { temporary + ".tag" }

  /// The part that an earlier download has left: its size, and the version of its content.
  func part(of url: ByteString) -> (size: Int64, tag: ByteString)? {
    guard resumes, let status = Self.file(temporary), status.st_size > 0,
      Self.file(tagPath) != nil, let text = try? Files.read(tagPath, Cancellation())
    else { return nil }
    let lines = text.bytes.split(separator: 10).map { ByteString($0) }
    guard lines.count == 2, lines[0] == url, !lines[1].hasLineEnd else { return nil }
    return (Int64(status.st_size), lines[1])
  }

  /// The status of a file; nil for anything else, also for a link.
  private static func file(_ path: ByteString) -> stat? {
    var status = stat()
    guard path.withCString({ lstat($0, &status) }) == .some(0) else { return nil }
    return status.st_mode & S_IFMT == S_IFREG ? status : nil
  }

  /// Makes sure that the file can be written.
  func prepare() throws(FlowError) {
    var status = stat()
    let isThere = path.withCString({ stat($0, &status) }) == .some(0)
    let kind = status.st_mode & S_IFMT
    // A device, such as /dev/null, is written to, not replaced.
    isDevice = isThere && kind == S_IFCHR
    if isThere, kind != S_IFREG, !isDevice {
      throw failure("write", kind == S_IFDIR ? EISDIR : EINVAL)
    }
    // Renaming only needs the permissions of the folder; a write-protected file must stay.
    if isThere, let allowed = path.withCString({ access($0, W_OK) }), allowed != 0 {
      throw failure("write", errno)
    }
    if isDevice {
      descriptor = try open(path, 0)
    } else if resumes {
      try openPart()
    } else {
      descriptor = try open(temporary, O_CREAT | O_EXCL)
      TemporaryPaths.shared.insert(temporary, isFolder: false)
    }
  }

  private func open(
    _ path: ByteString, _ flags: Int32, isUsual: (Int32) -> Bool = { _ in false }
  ) throws(FlowError) -> Int32 {
    let all = O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags
    // A file that is replaced keeps its permissions. In a sandbox they can't be changed later.
    var status = stat()
    let isThere = self.path.withCString { stat($0, &status) } == .some(0)
    let mode = isThere ? status.st_mode & 0o777 : 0o666
    let opened = path.withCString { FlowSystem.open($0, all, mode) } ?? -1
    if opened >= 0 || isUsual(errno) { return opened }
    throw failure("write", errno)
  }

  /// Opens the part that is there; false if there is none any more. Anybody who may write into the folder knows its
  /// name, and could have put a link or a file of his own there.
  private func openPresentPart() throws(FlowError) -> Bool {
    descriptor = try open(temporary, O_NOFOLLOW) { $0 == ENOENT || $0 == ELOOP || $0 == ENXIO }
    if descriptor < 0, errno == ENOENT { return false }
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_nlink <= 1, status.st_uid == geteuid()
    else {
      if descriptor >= 0 { drop() }
      throw FlowError(
        .error,
        "can't write '\(path)': '\(temporary)' isn't a part of it: a link, or no file of this user")
    }
    return true
  }

  /// Opens the part, which belongs to one download at a time.
  private func openPart() throws(FlowError) {
    while true {
      descriptor = try open(temporary, O_CREAT | O_EXCL) { $0 == EEXIST }
      if descriptor < 0, try !openPresentPart() { continue }
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
        let number = errno
        drop()
        guard number == EWOULDBLOCK else { throw failure("write", number) }
        throw FlowError(
          .error, "can't write '\(path)': another download to it continues", code: Int64(number))
      }
      // Another one may have completed the file, and taken it away, since it was opened.
      var ours = stat()
      var named = stat()
      let isThere = temporary.withCString { lstat($0, &named) } == .some(0)
      if fstat(descriptor, &ours) == 0, isThere, ours.st_ino == named.st_ino { return }
      drop()
    }
  }

  /// Closes the file.
  private func drop() {
    close(descriptor)
    descriptor = -1
  }

  /// Begins with the body, after `prepare`: the file keeps its first `offset` bytes. `tag` is the
  /// version of the content of the URL; nil when it can't be continued.
  func open(at offset: Int64, tag: ByteString?, of url: ByteString) throws(FlowError) {
    if isDevice { return }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure("write", errno) }
    // Even without an effect, ext4 takes it as a sign to write everything to the disk on `close`.
    if status.st_size != offset, ftruncate(descriptor, off_t(offset)) != 0 {
      throw failure("write", errno)
    }
    guard lseek(descriptor, 0, SEEK_END) >= 0 else { throw failure("write", errno) }
    size = offset
    guard resumes else { return }
    if let tag {
      do {
        try Files.write("\(url)\n\(tag)\n", to: tagPath, Cancellation(), followsLink: false)
      } catch {
        throw FlowError.from(error)
      }
    } else {
      _ = tagPath.withCString { unlink($0) }
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(FlowError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = FlowSystem.write(descriptor, rest.baseAddress, rest.count)
      if count > 0 {
        size += Int64(count)
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if count < 0, errno != EINTR {
        throw failure("write", errno)
      }
    }
  }

  /// Gives the complete file its name. Symbolic links at its place are followed.
  func complete() throws(FlowError) {
    // Another descriptor of the same file keeps its lock until it has its name.
    let lock = resumes && descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1
    defer { if lock >= 0 { close(lock) } }
    if isDevice {
      drop()
      return
    }
    do {
      let target = try FileTarget(path) { SystemError("write", path, $0) }
      _ = target.prepare(descriptor)
      let closed = close(descriptor)
      descriptor = -1
      // A full disk, or a network, may report its error only here.
      if closed != 0, errno != EINTR { throw failure("write", errno) }
      let problem = target.replace(by: temporary)
      if problem != 0 { throw failure("write", problem) }
    } catch {
      if !resumes {
        _ = temporary.withCString { unlink($0) }
        TemporaryPaths.shared.forget(temporary)
      }
      throw FlowError.from(error)
    }
    if resumes {
      _ = tagPath.withCString { unlink($0) }
    } else {
      TemporaryPaths.shared.forget(temporary)
    }
  }

  /// Ends a download that failed: what can be continued stays.
  func discard() {
    guard descriptor >= 0 else { return }
    var status = stat()
    let isEmpty = fstat(descriptor, &status) == 0 && status.st_size == 0
    // Before another download may take the part.
    if !isDevice, !resumes || isEmpty {
      for path in [temporary, tagPath] { _ = path.withCString { unlink($0) } }
      if !resumes { TemporaryPaths.shared.forget(temporary) }
    }
    drop()
  }

  private func failure(_ verb: String, _ number: Int32) -> FlowError {
    let reason = strerror(number).map { ByteString(cString: $0) } ?? "error \(number)"
    return FlowError(.error, "can't \(verb) '\(path)': \(reason)", code: Int64(number))
  }
}
