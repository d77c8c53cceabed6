internal import FlowEngine
internal import Glibc

/// Writes and reads the files of a store, which hold large values.
enum StoreFiles {
  /// Makes a file for this user only, and flushes its content to the disk. Blocks.
  static func write(
    _ bytes: [UInt8], to path: ByteString, of folder: ByteString
  ) throws(FlowError) {
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
    Failpoint.pass()
    let descriptor = path.withCString { open($0, flags, 0o600) } ?? -1
    guard descriptor >= 0 else { throw StoreProblem.system("write", folder, errno) }
    var problem = writeAll(bytes, to: descriptor)
    Failpoint.pass()
    if problem == 0, fsync(descriptor) != 0 { problem = errno }
    // A full disk may report its error only here.
    if close(descriptor) != 0, problem == 0, errno != EINTR { problem = errno }
    Failpoint.pass()
    guard problem != 0 else { return }
    _ = path.withCString { unlink($0) }
    throw StoreProblem.system("write", folder, problem)
  }

  /// Flushes the names in a folder to the disk. Blocks.
  static func synchronize(_ path: ByteString, of folder: ByteString) throws(FlowError) {
    let descriptor = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) } ?? -1
    guard descriptor >= 0 else { throw StoreProblem.system("write", folder, errno) }
    defer { close(descriptor) }
    if fsync(descriptor) != 0 { throw StoreProblem.system("write", folder, errno) }
    Failpoint.pass()
  }

  private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let part = UnsafeRawBufferPointer(rebasing: rest)
        let count = Glibc.write(descriptor, part.baseAddress, part.count)
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if count == 0 || errno != EINTR {
          return count == 0 ? EIO : errno
        }
      }
      return 0
    }
  }
}
