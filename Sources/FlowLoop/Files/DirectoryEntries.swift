internal import Glibc

/// Reads the entries of open folders.
enum DirectoryEntries {
  /// Opens a folder.
  ///
  /// - Parameters:
  ///   - path: The path of the folder, or its name in `parent`.
  ///   - parent: The descriptor of the folder that has it; `AT_FDCWD` for a path.
  ///   - follows: Whether `path` may be a link to a folder.
  /// - Returns: The descriptor; -1 with `errno` set when that fails, nil when `path` has a NUL in it.
  static func open(_ path: ByteString, in parent: Int32 = AT_FDCWD, follows: Bool) -> Int32? {
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW)
    return path.withCString { openat(parent, $0, flags) }
  }

  /// Calls `body` with the name and the kind of each entry, except `.` and `..`, in no order.
  ///
  /// - Returns: 0, or the `errno` of a failure.
  static func forEach(
    in descriptor: Int32, _ cancellation: Cancellation,
    _ body: (_ name: UnsafeBufferPointer<UInt8>, _ kind: FileKind) -> Void
  ) -> Int32 {
    // The stream closes its descriptor.
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { return errno }
    guard let stream = fdopendir(copy) else {
      let number = errno
      close(copy)
      return number
    }
    defer { closedir(stream) }
    while true {
      if cancellation.isRequested { return ECANCELED }
      errno = 0
      guard let entry = readdir(stream) else { return errno }
      // The name is longer or shorter than the tuple that Swift sees.
      guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return EINVAL }
      let text = UnsafeRawPointer(entry) + offset
      let name = UnsafeBufferPointer(
        start: text.assumingMemoryBound(to: UInt8.self),
        count: strlen(text.assumingMemoryBound(to: CChar.self)))
      let dot = UInt8(ascii: ".")
      if name.first == dot, name.count == 1 || name.count == 2 && name[1] == dot { continue }
      let type = UnsafeRawPointer(entry).load(
        fromByteOffset: MemoryLayout<dirent>.offset(of: \.d_type) ?? 0, as: UInt8.self)
      if let kind = FileKind(entry: type) {
        body(name, kind)
        continue
      }
      var status = stat()
      let known = fstatat(
        descriptor, text.assumingMemoryBound(to: CChar.self), &status, AT_SYMLINK_NOFOLLOW)
      // It may have been removed meanwhile.
      if known == 0 { body(name, FileKind(mode: status.st_mode)) }
    }
  }
}
