package import FlowEngine
internal import FlowSystem

/// Files of scripts on this node, by the SHA-256 of their content.
///
/// All processes of a user share the folder: `HASH` is a file, and `jobs/ID` has the links of one process, `jobs/ID.lock`
/// its lock. A job gets a hard link to a file, so a file with more than one name is in use. The least recently used
/// files are removed when all of them exceed the limit or the disk is full. Its functions block; they are for helper
/// threads.
package final class FileCache: Sendable {
  /// The most bytes of all files.
  package static let defaultLimit: Int64 = 10 << 30

  package let folder: ByteString
  private let limit: Int64
  /// The folder of this process, which others remove once its lock is free.
  private let own: ByteString
  private let lock: FileLock

  /// The time of modification of all files, in seconds: one with another time was written to by an op.
  private static let mark = 1_000_000_000
  /// Whether this process can set that time. In a sandbox it can't, and files have the stamp that is in `stamps`.
  private let setsMark: Bool
  /// The stamps of files by their hashes, from when their content was checked.
  private let stamps = Locked<[ByteString: FileStamp]>([:])

  /// Opens the cache, and makes its folder unless it is there.
  ///
  /// - Parameters:
  ///   - folder: The path of the folder.
  ///   - limit: The most bytes of all files.
  /// - Throws: A `SystemError` when the folder can't be made or written to.
  package init(_ folder: ByteString, limit: Int64 = defaultLimit) throws(SystemError) {
    self.folder = folder
    self.limit = limit
    let jobs: ByteString = "\(folder)/jobs"
    try Folders.make(jobs)
    Self.removeLeft(in: jobs)
    own = "\(jobs)/\(ByteString.unique)"
    // Another process may look whether this one still lives, at this moment.
    lock = try FileLock("\(own).lock", waits: true, Cancellation())
    try Folders.make(own)
    setsMark = Self.setTimes(own)
  }

  /// The folder of the user's cache; nil when the environment names neither `XDG_CACHE_HOME` nor `HOME`.
  package static var usualFolder: ByteString? {
    func folder(_ name: String) -> ByteString? {
      environment(name).flatMap { $0.bytes.first == UInt8(ascii: "/") ? $0 : nil }
    }
    if let cache = folder("XDG_CACHE_HOME") { return "\(cache)/flowlua/files" }
    return folder("HOME").map { "\($0)/.cache/flowlua/files" }
  }

  /// Removes the folder of this process with all links.
  package func removeOwn() {
    try? FileRemoval.remove(own, recursive: true, Cancellation())
    _ = lock.path.withCString { unlink($0) }
    lock.release()
  }

  /// Removes the folders of processes that have ended without doing so.
  private static func removeLeft(in jobs: ByteString) {
    let suffix = ".lock".bytes
    for path in paths(in: jobs) where path.bytes.suffix(suffix.count) == suffix[...] {
      guard let lock = try? FileLock(path, waits: false, Cancellation()) else { continue }
      let left = ByteString(path.bytes.dropLast(suffix.count))
      try? FileRemoval.remove(left, recursive: true, Cancellation())
      _ = path.withCString { unlink($0) }
      lock.release()
    }
  }

  private static func paths(in folder: ByteString) -> [ByteString] {
    ((try? DirectoryListing(folder).read(Cancellation())) ?? []).map(\.path)
  }

  // MARK: Files

  /// Whether a text is a SHA-256 in hexadecimal digits: names of files come from the network.
  package static func isHash(_ text: ByteString) -> Bool {
    text.count == 64
      && text.bytes.allSatisfy { $0.hexadecimalDigit != nil && $0.lowercased == $0 }
  }

  private func path(of hash: ByteString) throws(SystemError) -> ByteString {
    guard Self.isHash(hash) else {
      throw SystemError("'\(hash)' isn't a SHA-256", code: EINVAL)
    }
    return "\(folder)/\(hash)"
  }

  /// A path for something new of this process: a file that comes, or the folder of a job.
  package func makePath() -> ByteString {
    "\(own)/\(ByteString.unique)"
  }

  /// Gives a file another name, so that it stays as long as the name.
  ///
  /// - Parameters:
  ///   - hash: The SHA-256 of the file.
  ///   - size: The number of its bytes.
  ///   - path: The name, below a path of `makePath`.
  /// - Returns: Whether the cache has the file.
  /// - Throws: A `SystemError` when that isn't possible.
  package func link(
    _ hash: ByteString, size: Int64, to path: ByteString
  ) throws(SystemError) -> Bool {
    let file = try self.path(of: hash)
    let made = file.withCString { from in path.withCString { FlowSystem.link(from, $0) } } ?? nil
    guard made == 0 else {
      if made != nil, errno == ENOENT, try !FileStatus.exists(file) { return false }
      throw SystemError("write", path, made == nil ? EINVAL : errno)
    }
    guard let stamp = try? FileStamp.read(path), stamp.size == size,
      isUnchanged(path, stamp, hash)
    else {
      // An op has written to it, which only root can, and others in a sandbox.
      for path in [path, file] { _ = path.withCString { unlink($0) } }
      stamps.withLock { $0[hash] = nil }
      return false
    }
    if setsMark { Self.setTimes(path) }
    return true
  }

  /// Whether a file with this stamp still has the content of its hash.
  private func isUnchanged(_ path: ByteString, _ stamp: FileStamp, _ hash: ByteString) -> Bool {
    if stamp.modified == Int64(Self.mark) * 1_000_000_000 { return true }
    if setsMark { return false }
    // Another link changes the time of the metadata, so that doesn't count.
    if let known = stamps.withLock({ $0[hash] }) {
      return (known.inode, known.modified) == (stamp.inode, stamp.modified)
    }
    // It is from an earlier process.
    guard (try? FileHash.sha256.digest(ofFile: path, Cancellation())) == hash else { return false }
    stamps.withLock { $0[hash] = stamp }
    return true
  }

  /// Notes that a file is used now; returns whether that is possible.
  @discardableResult
  private static func setTimes(_ path: ByteString) -> Bool {
    var times = [timespec(), timespec(tv_sec: mark, tv_nsec: 0)]
    clock_gettime(CLOCK_REALTIME, &times[0])
    return path.withCString { utimensat(AT_FDCWD, $0, times, 0) } == 0
  }

  /// Puts a file that was received at a path of `makePath` into the cache. Its content has been checked.
  ///
  /// - Parameters:
  ///   - path: The path of the file, which then isn't there any more.
  ///   - hash: The SHA-256 of its content.
  /// - Throws: A `SystemError` when that isn't possible.
  package func adopt(_ path: ByteString, _ hash: ByteString) throws(SystemError) {
    let file = try self.path(of: hash)
    if setsMark {
      _ = path.withCString { chmod($0, 0o444) }
      Self.setTimes(path)
    } else if let stamp = try FileStamp.read(path) {
      stamps.withLock { $0[hash] = stamp }
    }
    try Folders.rename(path, to: file)
  }

  /// A file of the cache.
  private struct Entry {
    let path: ByteString
    let size: Int64
    let used: (Int, Int)
    let isInUse: Bool
  }

  private func entries() -> [Entry] {
    Self.paths(in: folder).filter { Self.isHash($0.fileName) }.compactMap { path in
      var status = stat()
      guard path.withCString({ lstat($0, &status) }) == 0 else { return nil }
      return Entry(
        path: path, size: Int64(status.st_size),
        used: (status.st_atim.tv_sec, status.st_atim.tv_nsec), isInUse: status.st_nlink > 1)
    }
  }

  /// Removes files that aren't in use, the least recently used first, until there is room for another one.
  ///
  /// - Parameter size: The number of its bytes.
  /// - Throws: A `SystemError` when the disk has no room for it even then.
  package func makeRoom(for size: Int64) throws(SystemError) {
    let entries = entries()
    var total = entries.reduce(Int64(0)) { $0.addingReportingOverflow($1.size).partialValue }
    for entry in entries.sorted(by: { $0.used < $1.used }) where !entry.isInUse {
      let isFull = total > limit - min(size, limit)
      if !isFull, freeBytes() >= size { return }
      if entry.path.withCString({ unlink($0) }) == 0 { total -= entry.size }
    }
    let free = freeBytes()
    if free < size {
      throw SystemError(
        "the disk of '\(folder)' is full: the file has \(size) bytes, and \(free) are free",
        code: ENOSPC)
    }
  }

  /// The bytes that the disk has left for this user.
  private func freeBytes() -> Int64 {
    var status = statvfs()
    guard folder.withCString({ statvfs($0, &status) }) == 0 else { return .max }
    let (bytes, isTooMany) = Int64(clamping: status.f_bavail)
      .multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
    return isTooMany ? .max : bytes
  }
}
