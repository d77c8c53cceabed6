internal import FlowSystem

/// An inotify descriptor, which stays open as long as a thread uses it.
final class Inotify: Sendable {
  let descriptor: Int32

  init() throws(SystemError) {
    descriptor = flowsystem_inotify()
    guard descriptor >= 0 else {
      let number = errno
      // The system reports its own limit like the process's limit.
      let isOwnLimit = number == EMFILE && flowsystem_has_descriptors()
      let hint: ByteString =
        isOwnLimit ? "; the limit is fs.inotify.max_user_instances of sysctl" : ""
      throw SystemError("can't watch files: \(systemMessage(number))\(hint)", code: number)
    }
  }

  deinit { close(descriptor) }
}

/// The folders of a tree, watched from before their entries were read: nothing that happens
/// meanwhile is missed, but some of it is both in the scan and reported.
struct FolderScan: Sendable {
  /// A folder and the entries in it.
  struct Folder: Sendable {
    /// The number of its watch.
    let watch: Int32
    /// The path from the top, empty for the top.
    var path: ByteString
    /// Whether each entry is a folder.
    var entries: [ByteString: Bool] = [:]
  }

  /// The folders, each before those in it.
  private(set) var folders: [Folder] = []

  /// Watches and reads a folder and, if that is wanted, all folders in it. Blocks.
  ///
  /// - Parameters:
  ///   - top: The path of the tree.
  ///   - place: The path from the top of the folder to begin with, empty for the top.
  ///   - isRecursive: Whether to do that for the folders in it, too.
  ///   - inotify: The descriptor that gets the watches.
  ///   - cancellation: Asked between entries.
  /// - Throws: A `SystemError`, also when the system allows no more watches.
  init(
    _ top: ByteString, from place: ByteString, isRecursive: Bool, _ inotify: Inotify,
    _ cancellation: Cancellation
  ) throws(SystemError) {
    let start = top.joined(with: place.bytes[...])
    var visitor = Visitor(
      start: start, place: place, isRecursive: isRecursive, inotify: inotify)
    try FileTree(path: start, verb: "watch", cancellation: cancellation).walk(
      follows: place.isEmpty, &visitor)
    folders = visitor.folders
  }

  private struct Visitor: FileTreeVisitor {
    let start: ByteString
    let place: ByteString
    let isRecursive: Bool
    let inotify: Inotify
    var folders: [Folder] = []
    var entries: [ByteString: Bool] = [:]
    var watch: Int32 = -1

    init(start: ByteString, place: ByteString, isRecursive: Bool, inotify: Inotify) {
      self.start = start
      self.place = place
      self.isRecursive = isRecursive
      self.inotify = inotify
    }

    mutating func willRead(_ folder: [UInt8]) throws(SystemError) {
      entries = [:]
      let path = start.joined(with: folder[...])
      let follows = folder.isEmpty && place.isEmpty
      let made = path.withCString {
        flowsystem_watch_folder(inotify.descriptor, $0, follows)
      }
      watch = made ?? -1
      guard watch < 0, errno != ENOENT, errno != ENOTDIR, errno != ELOOP else { return }
      if errno == ENOSPC {
        throw SystemError(
          "can't watch '\(path)': the limit is fs.inotify.max_user_watches of sysctl", code: ENOSPC)
      }
      throw SystemError("watch", path, errno)
    }

    mutating func found(
      _ name: UnsafeBufferPointer<UInt8>, _ kind: FileKind, in folder: [UInt8]
    ) -> Bool {
      entries[ByteString(name)] = kind == .directory
      return isRecursive && kind == .directory
    }

    mutating func didRead(_ folder: [UInt8], _ descriptor: Int32) throws(SystemError) {
      if watch < 0 { return }
      let path = place.isEmpty ? ByteString(folder) : place.joined(with: folder[...])
      folders.append(Folder(watch: watch, path: path, entries: entries))
    }
  }
}
