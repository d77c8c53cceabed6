internal import Glibc

/// What the system changes with the content of a file: files with equal stamps have equal content, apart from one that
/// was changed twice within the precision of the times.
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
