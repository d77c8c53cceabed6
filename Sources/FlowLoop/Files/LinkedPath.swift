internal import FlowSystem

/// Where the path of a file leads, and the links on the way.
///
/// A mounted ConfigMap of Kubernetes is such a path: `conf` leads to `..data/conf`, and `..data` to a folder that is
/// swapped for another one. Each of the links may be replaced, so that the folder of each is watched, too.
struct LinkedPath: Sendable, Equatable {
  /// An entry of a folder.
  struct Place: Sendable, Equatable {
    let folder: ByteString
    let name: ByteString
  }

  /// The links; the last one is what is missing, if the path leads to nothing.
  private(set) var links: [Place] = []
  /// The file itself.
  private(set) var file: Place
  /// Which file it is; nil if there is none.
  private(set) var identity: Identity?

  struct Identity: Sendable, Equatable {
    let device: UInt64
    let inode: UInt64
  }

  /// As many as the system follows.
  private static let mostLinks = 40

  /// Follows a path. Blocks.
  ///
  /// - Throws: A `SystemError` if a folder on the way can't be searched.
  init(_ path: ByteString) throws(SystemError) {
    let slash = UInt8(ascii: "/")
    func start(_ path: ByteString) -> ByteString { path.bytes.first == slash ? "/" : "." }
    func names(_ path: ByteString) -> [ByteString] {
      path.bytes.split(separator: slash).reversed().map { ByteString($0) }
    }
    var folder = start(path)
    var rest = names(path)
    file = Place(folder: folder, name: "")
    while let name = rest.popLast() {
      if name == "." { continue }
      let whole = folder == "." ? name : folder.joined(with: name.bytes[...])
      file = Place(folder: folder, name: name)
      guard let status = try FileStatus.read(whole, follows: false) else {
        links.append(file)
        return
      }
      if let target = status.target, links.count < Self.mostLinks {
        links.append(file)
        if target.bytes.first == slash { folder = "/" }
        rest += names(target)
      } else if rest.isEmpty {
        identity = Identity(device: status.device, inode: status.inode)
      } else {
        folder = whole
      }
    }
  }

  /// Watches the folders of the links: the names of links by the numbers of the watches. A folder that is gone was
  /// removed with a change of a link before it.
  func watchLinks(_ inotify: Inotify) -> [Int32: Set<ByteString>] {
    var watched: [Int32: Set<ByteString>] = [:]
    for link in links {
      let watch = link.folder.withCString { flowsystem_watch_folder(inotify.descriptor, $0, true) }
      if let watch, watch >= 0 { watched[watch, default: []].insert(link.name) }
    }
    return watched
  }
}

/// The watched parts of a path: its folders and, of a file, the links that lead to it.
struct WatchScan: Sendable {
  /// The path of the folder that is watched.
  let top: ByteString
  /// The only name in it to report; nil for all.
  var name: ByteString?
  var links: [Int32: Set<ByteString>] = [:]
  var identity: LinkedPath.Identity?
  let folders: FolderScan

  /// Watches and reads a folder, and those in it.
  init(
    folder: ByteString, from place: ByteString, isRecursive: Bool, _ inotify: Inotify,
    _ cancellation: Cancellation
  ) throws(SystemError) {
    top = folder
    folders = try FolderScan(folder, from: place, isRecursive: isRecursive, inotify, cancellation)
  }

  /// Watches a file by the folder that has it, so that a file that is replaced by another one is still watched, and
  /// whatever leads to it.
  init(
    file path: ByteString, _ inotify: Inotify, _ cancellation: Cancellation
  ) throws(SystemError) {
    var linked = try LinkedPath(path)
    // A link that is replaced meanwhile is followed again, now that it is watched.
    var attempts = 8
    while true {
      links = linked.watchLinks(inotify)
      let again = try LinkedPath(path)
      attempts -= 1
      if again == linked || attempts == 0 { break }
      linked = again
    }
    name = linked.file.name
    identity = linked.identity
    top = linked.file.folder
    folders = try FolderScan(top, from: "", isRecursive: false, inotify, cancellation)
  }
}
