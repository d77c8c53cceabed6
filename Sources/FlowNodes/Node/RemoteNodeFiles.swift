internal import FlowEngine
internal import FlowRemote
internal import FlowScripting

/// The files of the jobs of a node: it gets those that they need, and sends those that they give. Confined to the
/// thread of its host's loop.
final class RemoteNodeFiles {
  /// The files of a job, as its op sees them.
  struct Links: Sendable {
    /// The folder of the job; nil while it has no file.
    var folder: ByteString?
    /// The paths here, by those of the script.
    var paths: [ByteString: ByteString] = [:]
    /// The hashes of files that nobody has.
    var missing: [ByteString] = []
  }

  private let objects: ObjectStore
  private let loop: FlowEventLoop
  private let node: ByteString
  /// The folder of the cache; nil if the environment names none.
  private let folder: ByteString?
  /// The cache of that folder, made by the first job with files.
  private let caches: OncePerKey<ByteString, FileCache>
  /// Contents that come; the value is whether the server has them.
  private let arriving: OncePerKey<ByteString, Bool>

  init(
    _ objects: ObjectStore, _ loop: FlowEventLoop, _ node: ByteString, cache folder: ByteString?
  ) {
    self.objects = objects
    self.loop = loop
    self.node = node
    self.folder = folder
    caches = OncePerKey(loop)
    arriving = OncePerKey(loop, keepsValues: false)
  }

  /// Removes the links of all jobs.
  func close() {
    if let folder { caches[folder]?.removeOwn() }
  }

  // MARK: Files that a job needs

  /// Gets all files of a job into its folder; if contents are missing, the result has only their hashes.
  func prepare(_ needs: [RemoteJobFiles.Needed]) async throws(FlowError) -> Links {
    var links = Links()
    if needs.isEmpty { return links }
    let cache = try await openCache()
    links.folder = cache.makePath()
    var isComplete = false
    defer { if !isComplete { release(links) } }
    for need in needs {
      for file in need.files where links.paths[file.path] == nil {
        try await naming("can't get the file of <\(need.key)> on \(node)") {
          try await add(file, to: &links, cache)
        }
      }
    }
    isComplete = links.missing.isEmpty
    return isComplete ? links : Links(missing: links.missing)
  }

  /// Removes what a job had, and temporary folders that its op has made.
  func release(_ links: Links, _ folders: [ByteString] = []) {
    if links.folder == nil, folders.isEmpty { return }
    loop.offload {
      if let folder = links.folder {
        try? FileRemoval.remove(folder, recursive: true, Cancellation())
      }
      for folder in folders { try? TemporaryPaths.shared.removeFolder(folder) }
    } then: { _ in
    }
  }

  private func openCache() async throws(FlowError) -> FileCache {
    guard let folder else {
      throw FlowError(
        .error, "\(node) has no folder for files: set XDG_CACHE_HOME or HOME there")
    }
    return try await caches.value(folder) {
      try await loop.onHelperThread { try FileCache(folder) }
    }
  }

  private func add(
    _ file: RemoteNeededFile, to links: inout Links, _ cache: FileCache
  ) async throws(FlowError) {
    let path = file.path
    switch file.content {
    case .shared: try await loop.onHelperThread { try Self.checkShared(path) }
    case .object(let hash, let size):
      guard let name = path.validFileName, let folder = links.folder else {
        throw FlowError(.error, "'\(path)' isn't a file's path")
      }
      let place: ByteString = "\(folder)/\(links.paths.count + 1)/\(name)"
      if try await !link(hash, size, to: place, cache) {
        if try await !receive(hash, size, cache) {
          links.missing.append(hash)
        } else if try await !link(hash, size, to: place, cache) {
          throw FlowError(.error, "'\(cache.folder)' doesn't keep its files")
        }
      }
      links.paths[path] = place
    }
  }

  private static func checkShared(_ path: ByteString) throws(SystemError) {
    guard let status = try FileStatus.read(path, follows: true) else {
      throw SystemError("'\(path)' of a shared folder isn't there")
    }
    guard status.kind == .file else { throw SystemError("'\(path)' is a \(status.kind.name)") }
  }

  /// Makes a name for a content, and returns whether the cache has it.
  private func link(
    _ hash: ByteString, _ size: Int64, to place: ByteString, _ cache: FileCache
  ) async throws(FlowError) -> Bool {
    try await loop.onHelperThread {
      if let folder = place.folderName { try Folders.make(folder) }
      return try cache.link(hash, size: size, to: place)
    }
  }

  /// Gets a content from the server into the cache; false if the server doesn't have it.
  private func receive(
    _ hash: ByteString, _ size: Int64, _ cache: FileCache
  ) async throws(FlowError) -> Bool {
    try await arriving.value(hash) {
      let (object, path) = (RemoteNeededFile.object(hash), cache.makePath())
      try await loop.onHelperThread { try cache.makeRoom(for: size) }
      do throws(FlowError) {
        let digest = ObjectStore.digest(ofHash: hash)
        guard try await objects.getFile(object, path, digest: digest) else { return false }
      } catch {
        // Its script has ended, but another one may wait for the same content.
        do { if try await objects.info(object) == nil { return false } } catch {}
        throw error
      }
      try await loop.onHelperThread { try cache.adopt(path, hash) }
      return true
    }
  }

  // MARK: Files that a job gives

  /// Sends the files of an output: the value with the paths for the script, and the files that it gets.
  func send(
    _ key: ByteString, _ value: FlowValue, _ files: RemoteJobFiles, _ links: Links,
    script: ByteString
  ) async throws(FlowError) -> (FlowValue, [RemoteGivenFile]) {
    guard !value.isNull, let type = files.type(ofGiven: key) else { return (value, []) }
    if let wanted = type.mismatch(value.plain) {
      let error = FlowError.mismatchedOutput(key, value, wanted: wanted)
      throw error.with { $0.message = "\(error.message), on \(node)" }
    }
    // A file that the op has only passed on is one of the script.
    var own: [ByteString: ByteString] = [:]
    for (path, link) in links.paths { own[link] = path }
    var sent: [RemoteGivenFile] = []
    for path in type.files(in: value) where own[path] == nil && !files.shared.contains(path) {
      let object: ByteString = "result-\(script)-\(ByteString.unique)"
      let info = try await naming("can't send the file of <\(key)> from \(node)") {
        try await objects.putFile(object, path)
      }
      sent.append(RemoteGivenFile(path: path, object: object, digest: info.digest))
    }
    return (value.replacingPaths(own), sent)
  }

  /// Deletes objects that no script gets.
  func discard(_ files: [RemoteGivenFile]) { for file in files { objects.remove(file.object) } }
}
