internal import Glibc

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
