internal import FlowSystem

/// The metadata of a file, folder or link.
package struct FileStatus: Sendable {
  package let kind: FileKind
  /// The number of bytes; of a folder or device a number without meaning.
  package let size: Int64
  /// The time of the last change of the content, in seconds since 1970.
  package let modified: Double
  /// The device and the number of the file on it: another file has others.
  package let device: UInt64
  package let inode: UInt64
  /// The permissions.
  package let mode: UInt32
  /// The text of a link: the path that it leads to.
  package let target: ByteString?

  /// Reads the metadata. Blocks.
  ///
  /// - Parameters:
  ///   - path: The path.
  ///   - follows: Whether to follow a link at the end of the path.
  /// - Returns: The metadata; nil if there is nothing at the path.
  /// - Throws: A `SystemError`, also when a folder on the way can't be searched.
  package static func read(
    _ path: ByteString, follows: Bool
  ) throws(SystemError) -> FileStatus? {
    var status = stat()
    let result = path.withCString { follows ? stat($0, &status) : lstat($0, &status) }
    guard let result else { throw .nul(in: path) }
    guard result == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw SystemError("stat", path, errno)
    }
    let kind = FileKind(mode: status.st_mode)
    return FileStatus(
      kind: kind, size: Int64(status.st_size),
      modified: Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9,
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino),
      mode: UInt32(status.st_mode & 0o7777),
      target: kind == .link ? target(of: path, length: Int(status.st_size)) : nil)
  }

  /// Whether a path leads to anything, links followed. Blocks.
  package static func exists(_ path: ByteString) throws(SystemError) -> Bool {
    guard let result = path.withCString({ access($0, F_OK) }) else { throw .nul(in: path) }
    if result == 0 { return true }
    // A link that leads to itself, and a name that no file can have, lead to nothing.
    if [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG].contains(errno) { return false }
    throw SystemError("stat", path, errno)
  }

  /// The text of a link; nil if it has been replaced meanwhile.
  private static func target(of path: ByteString, length: Int) -> ByteString? {
    // Links of /proc have a size of 0, and a link may be replaced by a longer one.
    var room = max(length + 1, 256)
    while room <= 1 << 20 {
      var bytes = [UInt8](repeating: 0, count: room)
      let count = bytes.withUnsafeMutableBytes { buffer -> Int in
        guard let base = buffer.baseAddress else { return -1 }
        return path.withCString {
          readlink($0, base.assumingMemoryBound(to: CChar.self), buffer.count)
        } ?? -1
      }
      if count < 0 { return nil }
      if count < room { return ByteString(bytes[..<count]) }
      room *= 2
    }
    return nil
  }
}

/// The kind of an entry of a folder.
package enum FileKind: UInt8, Sendable, CaseIterable {
  case file, directory, link, pipe, socket, device

  /// The name that scripts use.
  package var name: ByteString {
    switch self {
    case .file: "file"
    case .directory: "directory"
    case .link: "link"
    case .pipe: "pipe"
    case .socket: "socket"
    case .device: "device"
    }
  }

  /// The kind in the mode of a status.
  init(mode: mode_t) {
    switch mode & S_IFMT {
    case S_IFDIR: self = .directory
    case S_IFLNK: self = .link
    case S_IFIFO: self = .pipe
    case S_IFSOCK: self = .socket
    case S_IFCHR, S_IFBLK: self = .device
    default: self = .file
    }
  }

  /// The kind in an entry of a directory; nil when the file system doesn't store it there.
  init?(entry type: UInt8) {
    switch Int(type) {
    case DT_REG: self = .file
    case DT_DIR: self = .directory
    case DT_LNK: self = .link
    case DT_FIFO: self = .pipe
    case DT_SOCK: self = .socket
    case DT_CHR, DT_BLK: self = .device
    default: return nil
    }
  }
}

/// The values that the system changes with the content of a file: files with equal stamps have equal content, apart
/// from one that was changed twice within the precision of the times.
package struct FileStamp: Hashable, Sendable {
  package let device: UInt64
  package let inode: UInt64
  package let size: Int64
  /// The time of the last change of the content, in nanoseconds since 1970.
  package let modified: Int64
  /// The time of the last change of the content or of the metadata, which no program can set.
  package let changed: Int64

  package init(device: UInt64, inode: UInt64, size: Int64, modified: Int64, changed: Int64) {
    self.device = device
    self.inode = inode
    self.size = size
    self.modified = modified
    self.changed = changed
  }

  init(_ status: stat) {
    self.init(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
      modified: Self.nanoseconds(status.st_mtim), changed: Self.nanoseconds(status.st_ctim))
  }

  private static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  /// Reads the stamp of a regular file, links followed; nil if there is none at the path. Blocks.
  package static func read(_ path: ByteString) throws(SystemError) -> FileStamp? {
    var status = stat()
    guard let result = path.withCString({ stat($0, &status) }) else { throw .nul(in: path) }
    if result == 0 { return FileKind(mode: status.st_mode) == .file ? FileStamp(status) : nil }
    if errno == ENOENT || errno == ENOTDIR { return nil }
    throw SystemError("stat", path, errno)
  }
}
