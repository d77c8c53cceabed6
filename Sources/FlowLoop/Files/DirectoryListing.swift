internal import FlowSystem

/// Lists a folder.
package struct DirectoryListing: Sendable {
  /// An entry of a folder.
  package struct Entry: Sendable {
    /// The path: the folder's as it was given, a slash, and the path within it.
    package let path: ByteString
    package let kind: FileKind
  }

  /// The folder.
  package var path: ByteString
  /// Whether to list the folders in it, too. Links aren't followed.
  package var isRecursive = false
  /// Whether to list names that begin with a dot, and what is in such folders.
  package var includesHidden = false
  /// A pattern that names or, if it has a slash, paths from the folder have to match.
  package var pattern: Glob?
  /// The kind of entries to list; nil for all.
  package var kind: FileKind?

  package init(_ path: ByteString) {
    self.path = path
  }

  /// Reads the folder. Blocks.
  ///
  /// - Parameter cancellation: Asked between entries.
  /// - Returns: The entries in the order of the bytes of their paths.
  /// - Throws: A `SystemError` when a folder can't be read; what is removed meanwhile is left out.
  package func read(_ cancellation: Cancellation) throws(SystemError) -> [Entry] {
    var visitor = Visitor(listing: self)
    try FileTree(path: path, verb: "list", cancellation: cancellation).walk(
      follows: true, &visitor)
    // A comparison in Swift would take several times as long as the C library's.
    return visitor.entries.sorted { left, right in
      left.path.withUnsafeBytes { left in
        right.path.withUnsafeBytes { right in
          let count = min(left.count, right.count)
          guard count > 0, let first = left.baseAddress, let second = right.baseAddress else {
            return left.count < right.count
          }
          let order = memcmp(first, second, count)
          return order == 0 ? left.count < right.count : order < 0
        }
      }
    }
  }

  private struct Visitor: FileTreeVisitor {
    let listing: DirectoryListing
    var entries: [Entry] = []

    mutating func found(
      _ name: UnsafeBufferPointer<UInt8>, _ kind: FileKind, in folder: [UInt8]
    ) -> Bool {
      if !listing.includesHidden, name.first == UInt8(ascii: ".") { return false }
      let isWanted =
        (listing.kind == nil || listing.kind == kind)
        && listing.pattern?.matches(path: Self.path(name, folder)[...], name: name) != false
      if isWanted {
        let whole = listing.path.joined(with: Self.path(name, folder)[...])
        entries.append(Entry(path: whole, kind: kind))
      }
      return listing.isRecursive && kind == .directory
    }

    private static func path(_ name: UnsafeBufferPointer<UInt8>, _ folder: [UInt8]) -> [UInt8] {
      folder.isEmpty ? Array(name) : folder + [UInt8(ascii: "/")] + name
    }
  }
}

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
