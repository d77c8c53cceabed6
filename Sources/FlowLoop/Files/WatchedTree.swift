internal import FlowSystem

/// The files of a watch, as far as it knows them: which exist, and what each report of the system means.
///
/// A state without a descriptor: reports go in, changes and requests come out. It knows the files. So it
/// leaves out what a scan has reported already, tells a new file from one that replaces another, and
/// finds out what has happened after reports were lost.
struct WatchedTree {
  /// The path that was given, of a folder or of a file.
  let path: ByteString
  /// The path of the folder that is watched.
  private(set) var top: ByteString
  /// The only name in it to report; nil for all.
  private(set) var name: ByteString?
  /// The names of links that lead to the file, by the watches of their folders; one of them may be missing.
  private var links: [Int32: Set<ByteString>]
  /// Which file it is; nil if that isn't known.
  private var identity: LinkedPath.Identity?
  let isRecursive: Bool

  private var folders: [Int32: FolderScan.Folder] = [:]
  private var watches: [ByteString: Int32] = [:]
  /// The first half of a move whose other half may follow.
  private var departure: (cookie: UInt32, folder: Int32, name: ByteString, isFolder: Bool)?

  /// Changes that nobody has taken yet.
  var changes = FileChangeQueue()
  /// The folders, from the top, that have to be scanned before further reports are read; the empty
  /// path means that all has to be scanned again.
  var folderToScan: ByteString?
  /// The watches that aren't needed any more.
  var watchesToEnd: [Int32] = []
  /// Whether the top is gone, so that nothing follows.
  private(set) var isGone = false

  init(_ path: ByteString, isRecursive: Bool, _ scan: WatchScan) {
    self.path = path
    self.isRecursive = isRecursive
    top = scan.top
    name = scan.name
    links = scan.links
    identity = scan.identity
    replace(with: scan.folders)
  }

  /// Whether a move waits for its other half.
  var hasDeparture: Bool { departure != nil }

  // MARK: Scans

  /// Adds a folder that was scanned because it is new; what is in it is new too, unless an earlier scan
  /// has found it.
  mutating func add(_ scan: FolderScan) {
    for var folder in scan.folders {
      let known = folders[folder.watch]?.entries ?? [:]
      for (name, isFolder) in folder.entries.sorted(by: { $0.key < $1.key })
      where known[name] == nil && isReported(name) {
        report(.created, folder.path, name, isFolder)
      }
      // The system still reports what has become of known entries.
      folder.entries.merge(known) { $1 }
      enter(folder)
    }
  }

  /// Replaces everything by a scan after reports were lost, or a link was replaced, and reports the differences.
  mutating func update(_ scan: WatchScan) {
    let before = entries
    watchesToEnd += Set(folders.keys).union(links.keys).subtracting(scan.links.keys)
      .subtracting(scan.folders.folders.map(\.watch))
    top = scan.top
    name = scan.name
    links = scan.links
    replace(with: scan.folders)
    if let before = identity, let after = scan.identity, before != after {
      changes.append(FileChange(kind: .changed, path: path, isFolder: false))
    }
    identity = scan.identity
    let after = entries
    for (path, isFolder) in before.sorted(by: { $0.key < $1.key }) where after[path] == nil {
      changes.append(FileChange(kind: .removed, path: path, isFolder: isFolder))
    }
    for (path, isFolder) in after.sorted(by: { $0.key < $1.key }) where before[path] == nil {
      changes.append(FileChange(kind: .created, path: path, isFolder: isFolder))
    }
  }

  private mutating func replace(with scan: FolderScan) {
    folders = [:]
    watches = [:]
    departure = nil
    for folder in scan.folders { enter(folder) }
  }

  private mutating func enter(_ folder: FolderScan.Folder) {
    // A scan may find a folder at its new place before its move is reported.
    forget(folder.watch)
    folders[folder.watch] = folder
    watches[folder.path] = folder.watch
  }

  /// All reported entries by their whole paths.
  private var entries: [ByteString: Bool] {
    var result: [ByteString: Bool] = [:]
    for folder in folders.values {
      for (name, isFolder) in folder.entries where isReported(name) {
        result[whole(folder.path, name)] = isFolder
      }
    }
    return result
  }

  // MARK: Reports

  /// Handles a report of the system.
  mutating func handle(_ event: flowsystem_file_event) {
    func has(_ kind: Int) -> Bool { Int(event.kinds) & kind != 0 }
    if has(FLOWSYSTEM_OVERFLOW) {
      endDeparture()
      changes.append(FileChange(kind: .overflow, path: self.path, isFolder: self.name == nil))
      folderToScan = ""
      return
    }
    let name = ByteString(UnsafeBufferPointer(start: event.name, count: event.name_length))
    if links[event.watch]?.contains(name) == true {
      folderToScan = ""
      return
    }
    // A folder isn't kept in a variable while its entries change: they would be copied.
    guard let path = folders[event.watch]?.path else { return }
    if has(FLOWSYSTEM_ENDED) || has(FLOWSYSTEM_GONE) {
      endDeparture()
      if path.isEmpty { topIsGone(event.watch) }
      if has(FLOWSYSTEM_ENDED) { forget(event.watch) }
      return
    }
    let isFolder = has(FLOWSYSTEM_FOLDER)
    if let departure, has(FLOWSYSTEM_MOVED_TO), departure.cookie == event.cookie, isReported(name) {
      self.departure = nil
      move(departure.folder, departure.name, to: event.watch, name, isFolder)
      return
    }
    endDeparture()
    guard isReported(name) else { return }
    if has(FLOWSYSTEM_MOVED_FROM) {
      departure = (event.cookie, event.watch, name, isFolder)
    } else if has(FLOWSYSTEM_REMOVED) {
      remove(name, from: event.watch)
    } else if has(FLOWSYSTEM_CHANGED), folders[event.watch]?.entries[name] != nil {
      if !isFolder { report(.changed, path, name, false) }
    } else {
      arrive(name, in: event.watch, isFolder, replaces: has(FLOWSYSTEM_MOVED_TO))
    }
  }

  /// Handles that the other half of a move doesn't follow: the entry has left the tree.
  mutating func endDeparture() {
    guard let departure else { return }
    self.departure = nil
    remove(departure.name, from: departure.folder)
  }

  private mutating func arrive(
    _ name: ByteString, in watch: Int32, _ isFolder: Bool, replaces: Bool
  ) {
    guard let path = folders[watch]?.path else { return }
    identity = nil
    let known = folders[watch]?.entries.updateValue(isFolder, forKey: name)
    if known == nil {
      report(.created, path, name, isFolder)
    } else if replaces {
      report(.changed, path, name, isFolder)
    }
    // A folder that a scan has found was scanned itself.
    if isFolder, isRecursive, known != true || replaces {
      folderToScan = place(path, name)
    }
  }

  private mutating func remove(_ name: ByteString, from watch: Int32) {
    guard let path = folders[watch]?.path,
      let isFolder = folders[watch]?.entries.removeValue(forKey: name)
    else { return }
    if isFolder { dropTree(place(path, name)) }
    report(.removed, path, name, isFolder)
  }

  private mutating func move(
    _ source: Int32, _ name: ByteString, to target: Int32, _ newName: ByteString, _ isFolder: Bool
  ) {
    guard let from = folders[source]?.path, let into = folders[target]?.path else { return }
    let isKnown = folders[source]?.entries.removeValue(forKey: name) != nil
    let (oldPlace, newPlace) = (place(from, name), place(into, newName))
    let replaced = folders[target]?.entries.updateValue(isFolder, forKey: newName)
    if replaced == true { dropTree(newPlace) }
    if isFolder {
      moveTree(oldPlace, to: newPlace)
      // A scan that was begun at the old place hasn't found it.
      if !tree(newPlace).isComplete { folderToScan = newPlace }
    }
    if isKnown {
      changes.append(
        FileChange(
          kind: .moved, path: whole(into, newName), origin: whole(from, name),
          isFolder: isFolder))
    } else {
      report(replaced == nil ? .created : .changed, into, newName, isFolder)
    }
  }

  private mutating func topIsGone(_ watch: Int32) {
    guard !isGone else { return }
    // Its links may soon lead to another one.
    if !links.isEmpty {
      folderToScan = ""
      return
    }
    isGone = true
    if let name {
      if folders[watch]?.entries[name] != nil { report(.removed, "", name, false) }
    } else {
      changes.append(FileChange(kind: .removed, path: top, isFolder: true))
    }
  }

  // MARK: Folders

  private mutating func forget(_ watch: Int32) {
    guard let folder = folders.removeValue(forKey: watch) else { return }
    if watches[folder.path] == watch { watches[folder.path] = nil }
  }

  /// The watches of a folder and of those in it, and whether all of them are watched. It looks only at these
  /// folders, not at all watches, so removing a large tree folder by folder isn't slow.
  private func tree(_ place: ByteString) -> (watches: [Int32], isComplete: Bool) {
    guard isRecursive else { return ([], true) }
    var (found, isComplete) = ([Int32](), true)
    var places = [place]
    while let next = places.popLast() {
      guard let watch = watches[next], let folder = folders[watch] else {
        isComplete = false
        continue
      }
      found.append(watch)
      for (name, isFolder) in folder.entries where isFolder {
        places.append(self.place(next, name))
      }
    }
    return (found, isComplete)
  }

  private mutating func dropTree(_ place: ByteString) {
    let dropped = tree(place).watches
    watchesToEnd += dropped
    for watch in dropped { forget(watch) }
  }

  private mutating func moveTree(_ place: ByteString, to newPlace: ByteString) {
    for watch in tree(place).watches {
      guard var folder = folders[watch] else { continue }
      forget(watch)
      folder.path = ByteString(newPlace.bytes + folder.path.bytes.dropFirst(place.count))
      enter(folder)
    }
  }

  // MARK: Paths

  /// Whether changes of an entry are reported; the temporary files of this program are not.
  private func isReported(_ entry: ByteString) -> Bool {
    if let name { return entry == name }
    return
      !(entry.bytes.starts(with: AtomicFile.namePrefix)
      && entry.bytes.suffix(AtomicFile.nameSuffix.count).elementsEqual(AtomicFile.nameSuffix))
  }

  private func place(_ folder: ByteString, _ name: ByteString) -> ByteString {
    folder.isEmpty ? name : folder.joined(with: name.bytes[...])
  }

  private func whole(_ folder: ByteString, _ name: ByteString) -> ByteString {
    if self.name != nil { return path }
    return top.joined(with: place(folder, name).bytes[...])
  }

  private mutating func report(
    _ kind: FileChange.Kind, _ folder: ByteString, _ name: ByteString, _ isFolder: Bool
  ) {
    changes.append(FileChange(kind: kind, path: whole(folder, name), isFolder: isFolder))
  }
}
