internal import Glibc

/// Removes files, links and folders.
package enum FileRemoval {
  /// Removes the file, link or folder at a path. A link is removed itself. Blocks.
  ///
  /// - Parameters:
  ///   - path: The path.
  ///   - recursive: Whether a folder may have something in it, which is removed first.
  ///   - cancellation: Asked between entries.
  /// - Throws: A `SystemError`, also when there is nothing at the path.
  package static func remove(
    _ path: ByteString, recursive: Bool, _ cancellation: Cancellation
  ) throws(SystemError) {
    // With a slash after it a link would be followed.
    let bare = path.withoutTrailingSlashes
    let last = bare.lastPathComponent
    if last.isEmpty || last.elementsEqual(".".utf8) || last.elementsEqual("..".utf8) {
      // The system refuses that, too, but only after everything in it would be gone.
      throw SystemError("remove", path, EINVAL)
    }
    var status = stat()
    guard let known = bare.withCString({ lstat($0, &status) }) else { throw .nul(in: path) }
    guard known == 0 else { throw SystemError("remove", path, errno) }
    guard FileKind(mode: status.st_mode) == .directory else {
      try call("remove", bare) { unlink($0) }
      return
    }
    if recursive {
      var visitor = Visitor(
        tree: FileTree(path: bare, verb: "remove", cancellation: cancellation))
      try visitor.tree.walk(follows: false, &visitor)
    }
    do throws(SystemError) { try call("remove", bare) { rmdir($0) } } catch {
      guard error.code == ENOTEMPTY, !recursive else { throw error }
      throw SystemError(error.messageBytes + "; 'recursive' removes what is in it", code: ENOTEMPTY)
    }
  }

  /// Removes a temporary folder with all that is in it, also where programs have made folders that can't be written.
  /// Blocks.
  ///
  /// - Throws: A `SystemError`, also when there is nothing at the path.
  package static func removeTemporary(_ path: ByteString) throws(SystemError) {
    do throws(SystemError) {
      try remove(path, recursive: true, Cancellation())
    } catch {
      guard error.code == EACCES else { throw error }
      try call("remove", path) { chmod($0, 0o700) }
      var opener = Opener()
      try FileTree(path: path, verb: "remove", cancellation: Cancellation())
        .walk(follows: false, &opener)
      try remove(path, recursive: true, Cancellation())
    }
  }

  /// Makes the folders of a tree writable for their owner.
  private struct Opener: FileTreeVisitor {
    var names: [ByteString] = []

    mutating func found(
      _ name: UnsafeBufferPointer<UInt8>, _ kind: FileKind, in folder: [UInt8]
    ) -> Bool {
      if kind == .directory { names.append(ByteString(name)) }
      return kind == .directory
    }

    mutating func didRead(_ folder: [UInt8], _ descriptor: Int32) throws(SystemError) {
      for name in names { _ = name.withCString { fchmodat(descriptor, $0, 0o700, 0) } }
      names.removeAll(keepingCapacity: true)
    }
  }

  private struct Visitor: FileTreeVisitor {
    let tree: FileTree
    /// The entries of the folder that aren't folders.
    var names: [ByteString] = []

    init(tree: FileTree) { self.tree = tree }

    mutating func found(
      _ name: UnsafeBufferPointer<UInt8>, _ kind: FileKind, in folder: [UInt8]
    ) -> Bool {
      if kind == .directory { return true }
      names.append(ByteString(name))
      return false
    }

    mutating func didRead(_ folder: [UInt8], _ descriptor: Int32) throws(SystemError) {
      for name in names {
        try tree.cancellation.check()
        try remove(name, folder, descriptor, 0)
      }
      names.removeAll(keepingCapacity: true)
    }

    mutating func didLeave(
      _ name: ByteString, in folder: [UInt8], _ descriptor: Int32
    ) throws(SystemError) {
      try remove(name, folder, descriptor, AT_REMOVEDIR)
    }

    private func remove(
      _ name: ByteString, _ folder: [UInt8], _ descriptor: Int32, _ flags: Int32
    ) throws(SystemError) {
      let result = name.withCString { unlinkat(descriptor, $0, flags) }
      // Another process may have been faster.
      if result != 0, errno != ENOENT { throw tree.failure(folder, name, errno) }
    }
  }
}

/// Calls a function of the system with a path; it returns 0 unless it fails.
func call(
  _ verb: String, _ path: ByteString, _ body: (UnsafePointer<CChar>) -> Int32
) throws(SystemError) {
  guard let result = path.withCString(body) else { throw .nul(in: path) }
  if result != 0 { throw SystemError(verb, path, errno) }
}
