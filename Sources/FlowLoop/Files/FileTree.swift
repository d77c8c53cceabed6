internal import FlowSystem

/// Takes part in a walk through a tree of folders.
protocol FileTreeVisitor {
  /// Called for each entry of a folder, before its folders are walked through.
  ///
  /// - Parameters:
  ///   - name: The name of the entry, valid during the call.
  ///   - kind: Its kind.
  ///   - folder: The path of the folder from the top of the tree, empty for the top.
  /// - Returns: Whether to walk through this entry, which is a folder.
  mutating func found(
    _ name: UnsafeBufferPointer<UInt8>, _ kind: FileKind, in folder: [UInt8]
  ) -> Bool

  /// Called when a folder is open, before its entries are read.
  mutating func willRead(_ folder: [UInt8]) throws(SystemError)

  /// Called after the entries of a folder were read. Those that weren't folders to walk through can
  /// be handled now.
  mutating func didRead(_ folder: [UInt8], _ descriptor: Int32) throws(SystemError)

  /// Called after a folder and all below it was walked through, with the open folder that has it.
  mutating func didLeave(
    _ name: ByteString, in folder: [UInt8], _ descriptor: Int32
  ) throws(SystemError)
}

extension FileTreeVisitor {
  mutating func willRead(_ folder: [UInt8]) throws(SystemError) {}

  mutating func didRead(_ folder: [UInt8], _ descriptor: Int32) throws(SystemError) {}

  mutating func didLeave(
    _ name: ByteString, in folder: [UInt8], _ descriptor: Int32
  ) throws(SystemError) {}
}

/// A tree of folders of any depth.
///
/// A walk opens each folder from the one above it, by its name. So a path may be longer than the
/// system's limit, and no link is followed. Nobody can lead the walk out of the tree by replacing a
/// folder with a link. It needs one descriptor at a time and returns upwards by `..`,
/// after which it compares the identity of the folder with the one from which it came.
struct FileTree {
  /// The path of the top.
  let path: ByteString
  /// The verb for error messages: `list`.
  let verb: String
  let cancellation: Cancellation

  /// The identity of a folder.
  private struct Identity: Equatable {
    let device: dev_t
    let inode: ino_t

    init?(_ descriptor: Int32) {
      var status = stat()
      guard fstat(descriptor, &status) == 0 else { return nil }
      device = status.st_dev
      inode = status.st_ino
    }
  }

  /// A folder in which the walk is.
  private struct Level {
    let name: ByteString
    let identity: Identity?
    /// The folders in it that are still to be walked through.
    var folders: [ByteString] = []
  }

  /// Walks through the folder and, where the visitor wants that, the folders in it. Blocks.
  ///
  /// - Parameters:
  ///   - follows: Whether the top may be a link to a folder.
  ///   - visitor: Notified of everything that is found.
  /// - Throws: The error of the visitor, or of a folder which can't be read; the walk ignores folders
  ///   that are removed meanwhile.
  func walk(follows: Bool, _ visitor: inout some FileTreeVisitor) throws(SystemError) {
    guard var current = DirectoryEntries.open(path, follows: follows) else { throw .nul(in: path) }
    guard current >= 0 else { throw SystemError(verb, path, errno) }
    defer { close(current) }
    /// The path of the current folder from the top.
    var place: [UInt8] = []
    var levels = [Level(name: path, identity: Identity(current))]
    try read(current, place, &levels, &visitor)
    while !levels.isEmpty {
      try cancellation.check()
      if let name = levels[levels.count - 1].folders.popLast() {
        guard let next = DirectoryEntries.open(name, in: current, follows: false) else { continue }
        if next < 0 {
          // It was removed, or replaced by something else.
          if errno == ENOENT || errno == ENOTDIR || errno == ELOOP { continue }
          throw failure(place, name, errno)
        }
        close(current)
        current = next
        if !place.isEmpty { place.append(UInt8(ascii: "/")) }
        place.append(contentsOf: name.bytes)
        levels.append(Level(name: name, identity: Identity(current)))
        try read(current, place, &levels, &visitor)
      } else {
        let left = levels.removeLast()
        guard let upper = levels.last else { return }
        let parent = openat(current, ".." as String, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { throw failure(place, nil, errno) }
        close(current)
        current = parent
        place.removeLast(min(place.count, left.name.count + 1))
        guard Identity(current) == upper.identity else { throw failure(place, nil, ESTALE) }
        try visitor.didLeave(left.name, in: place, current)
      }
    }
  }

  private func read(
    _ descriptor: Int32, _ place: [UInt8], _ levels: inout [Level],
    _ visitor: inout some FileTreeVisitor
  ) throws(SystemError) {
    try visitor.willRead(place)
    var folders: [ByteString] = []
    let problem = DirectoryEntries.forEach(in: descriptor, cancellation) { name, kind in
      if visitor.found(name, kind, in: place) { folders.append(ByteString(name)) }
    }
    if problem == ECANCELED { throw .cancelled }
    // A folder that is removed while it is read has no entries any more.
    if problem != 0, problem != ENOENT { throw failure(place, nil, problem) }
    try visitor.didRead(place, descriptor)
    levels[levels.count - 1].folders = folders
  }

  /// The error of a folder, or of an entry in it.
  func failure(_ place: [UInt8], _ name: ByteString?, _ number: Int32) -> SystemError {
    var whole = path.joined(with: place[...])
    if let name { whole = whole.joined(with: name.bytes[...]) }
    return SystemError(verb, whole, number)
  }
}

extension ByteString {
  /// The path of something in this folder; `name` may itself be a path, or empty for the folder.
  func joined(with name: ArraySlice<UInt8>) -> ByteString {
    if name.isEmpty { return self }
    let slash = UInt8(ascii: "/")
    return ByteString(bytes.last == slash ? bytes + name : bytes + [slash] + name)
  }

  /// The path without slashes at its end, which would make the system follow a link.
  var withoutTrailingSlashes: ByteString {
    guard let last = bytes.lastIndex(where: { $0 != UInt8(ascii: "/") }) else {
      return isEmpty ? self : "/"
    }
    return ByteString(bytes[...last])
  }
}

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
    let last = bare.fileName
    if last.isEmpty || last.equals(".") || last.equals("..") {
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
      throw SystemError(error.message + "; 'recursive' removes its content", code: ENOTEMPTY)
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
