internal import Glibc

/// Lists a folder.
package struct DirectoryListing: Sendable {
  /// An entry of a folder.
  package struct Entry: Sendable {
    /// The path: that of the folder as it was given, a slash, and the path within it.
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
