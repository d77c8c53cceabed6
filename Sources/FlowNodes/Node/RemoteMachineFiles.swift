internal import FlowEngine
internal import FlowRemote
internal import FlowScripting

/// The files of the jobs of a machine: it gets those that they need, and sends those that they give. Confined to the
/// thread of its host's loop.
final class RemoteMachineFiles {
  /// Why a job can't have its files.
  enum Problem: Error {
    /// The server doesn't have the contents with these hashes.
    case missing([ByteString])
    case failed(FlowError)
  }

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
  private let loop: EventLoop
  private let machine: ByteString
  /// The folder of the cache; nil if the environment names none.
  private let folder: ByteString?
  /// Made by the first job with files.
  private var cache: FileCache?
  /// What waits for contents that come.
  private var arriving: [ByteString: [(Result<Void, Problem>) -> Void]] = [:]
  private var count: UInt64 = 0

  init(
    _ objects: ObjectStore, _ loop: EventLoop, _ machine: ByteString, cache folder: ByteString?
  ) {
    self.objects = objects
    self.loop = loop
    self.machine = machine
    self.folder = folder
  }

  /// Removes the links of all jobs.
  func close() {
    cache?.removeOwn()
    cache = nil
  }

  // MARK: Files that a job needs

  /// Gets all files of a job into its folder.
  func prepare(
    _ needs: [RemoteJobFiles.Needed], then: @escaping (Result<Links, Problem>) -> Void
  ) {
    guard !needs.isEmpty else { return then(.success(Links())) }
    openCache { [self] result in
      switch result {
      case .failure(let problem): then(.failure(problem))
      case .success(let cache):
        var links = Links()
        links.folder = cache.makePath()
        prepare(needs[...], links, cache) { [self] result in
          switch result {
          case .success(let links) where links.missing.isEmpty: return then(result)
          case .success(let links): then(.failure(.missing(links.missing)))
          case .failure: then(result)
          }
          release(links)
        }
      }
    }
  }

  /// Removes what a job had.
  func release(_ links: Links) {
    guard let folder = links.folder else { return }
    loop.offload {
      try? FileRemoval.remove(folder, recursive: true, Cancellation())
    } then: { _ in
    }
  }

  /// Removes temporary folders that ops have made.
  func remove(_ folders: [ByteString]) {
    if folders.isEmpty { return }
    loop.offload {
      for folder in folders { try? TemporaryPaths.shared.removeFolder(folder) }
    } then: { _ in
    }
  }

  private func openCache(_ then: @escaping (Result<FileCache, Problem>) -> Void) {
    if let cache { return then(.success(cache)) }
    guard let folder else {
      let text: ByteString = "\(machine) has no folder for files: set XDG_CACHE_HOME or HOME there"
      return then(.failure(.failed(FlowError(.error, text))))
    }
    work { () throws(SystemError) in
      try FileCache(folder)
    } then: { [self] result in
      switch result {
      case .failure(let error): then(.failure(.failed(error)))
      case .success(let made):
        // Another job may have been faster.
        if let cache {
          made.removeOwn()
          return then(.success(cache))
        }
        cache = made
        then(.success(made))
      }
    }
  }

  private func prepare(
    _ rest: ArraySlice<RemoteJobFiles.Needed>, _ links: Links, _ cache: FileCache,
    _ then: @escaping (Result<Links, Problem>) -> Void
  ) {
    guard let need = rest.first else { return then(.success(links)) }
    prepare(need.files[...], links, cache) { [self] result in
      switch result {
      case .failure(.failed(let error)):
        let text: ByteString =
          "can't get the file of <\(need.key)> on \(machine): \(error.message)"
        then(.failure(.failed(error.with { $0.message = text })))
      case .failure(let problem): then(.failure(problem))
      case .success(let links): prepare(rest.dropFirst(), links, cache, then)
      }
    }
  }

  private func prepare(
    _ rest: ArraySlice<RemoteNeededFile>, _ links: Links, _ cache: FileCache,
    _ then: @escaping (Result<Links, Problem>) -> Void
  ) {
    guard let file = rest.first else { return then(.success(links)) }
    if links.paths[file.path] != nil { return prepare(rest.dropFirst(), links, cache, then) }
    switch file.content {
    case .shared:
      let path = file.path
      work { () throws(SystemError) in
        try Self.checkShared(path)
      } then: { [self] result in
        if case .failure(let error) = result { return then(.failure(.failed(error))) }
        prepare(rest.dropFirst(), links, cache, then)
      }
    case .object(let hash, let size):
      guard let name = file.path.validFileName, let folder = links.folder else {
        let error = FlowError(.error, "'\(file.path)' isn't a file's path")
        return then(.failure(.failed(error)))
      }
      let place: ByteString = "\(folder)/\(links.paths.count + 1)/\(name)"
      link(hash, size, to: place, cache, isNew: false) { [self] result in
        var links = links
        switch result {
        case .success: links.paths[file.path] = place
        case .failure(.missing(let hashes)):
          links.paths[file.path] = place
          links.missing += hashes
        case .failure(let problem): return then(.failure(problem))
        }
        prepare(rest.dropFirst(), links, cache, then)
      }
    }
  }

  private static func checkShared(_ path: ByteString) throws(SystemError) {
    guard let status = try FileStatus.read(path, follows: true) else {
      throw SystemError("'\(path)' of a shared folder isn't there")
    }
    guard status.kind == .file else { throw SystemError("'\(path)' is a \(status.kind.name)") }
  }

  /// Makes a name for a content, which comes from the server unless it is in the cache.
  private func link(
    _ hash: ByteString, _ size: Int64, to place: ByteString, _ cache: FileCache, isNew: Bool,
    _ then: @escaping (Result<Void, Problem>) -> Void
  ) {
    work { () throws(SystemError) in
      if let folder = place.folderName { try Folders.make(folder) }
      return try cache.link(hash, size: size, to: place)
    } then: { [self] result in
      switch result {
      case .failure(let error): then(.failure(.failed(error)))
      case .success(true): then(.success(()))
      case .success(false) where isNew:
        let text: ByteString = "'\(cache.folder)' doesn't keep its files"
        then(.failure(.failed(FlowError(.error, text))))
      case .success(false):
        receive(hash, size, cache) { [self] result in
          if case .failure(let problem) = result { return then(.failure(problem)) }
          link(hash, size, to: place, cache, isNew: true, then)
        }
      }
    }
  }

  /// Gets a content from the server into the cache.
  private func receive(
    _ hash: ByteString, _ size: Int64, _ cache: FileCache,
    _ then: @escaping (Result<Void, Problem>) -> Void
  ) {
    if let waiting = arriving[hash] {
      arriving[hash] = waiting + [then]
      return
    }
    arriving[hash] = [then]
    let path = cache.makePath()
    let end = { [self] (result: Result<Void, Problem>) in
      for then in arriving.removeValue(forKey: hash) ?? [] { then(result) }
    }
    work { () throws(SystemError) in
      try cache.makeRoom(for: size)
    } then: { [self] result in
      if case .failure(let error) = result { return end(.failure(.failed(error))) }
      objects.getFile(RemoteNeededFile.object(hash), path, digest: ObjectStore.digest(ofHash: hash))
      {
        [self] result in
        switch result {
        case .failure(let error):
          // Its script has ended, but another one may wait for the same content.
          objects.info(RemoteNeededFile.object(hash)) { result in
            if case .success(nil) = result { return end(.failure(.missing([hash]))) }
            end(.failure(.failed(error)))
          }
        case .success(false): end(.failure(.missing([hash])))
        case .success(true):
          work { () throws(SystemError) in
            try cache.adopt(path, hash)
          } then: { result in
            end(result.mapError { .failed($0) })
          }
        }
      }
    }
  }

  // MARK: Files that a job gives

  /// Sends the files of an output: the value with the paths for the script, and the files that it gets.
  func send(
    _ key: ByteString, _ value: FlowValue, _ files: RemoteJobFiles, _ links: Links,
    script: ByteString, then: @escaping (Result<(FlowValue, [RemoteGivenFile]), FlowError>) -> Void
  ) {
    guard !value.isNull, let type = files.type(ofGiven: key) else {
      return then(.success((value, [])))
    }
    if let wanted = type.mismatch(value.plain) {
      let error = FlowError.mismatchedOutput(key, value, wanted: wanted)
      return then(
        .failure(error.with { $0.message = "\(error.message), on \(machine)" }))
    }
    // A file that the op has only passed on is one of the script.
    var own: [ByteString: ByteString] = [:]
    for (path, link) in links.paths { own[link] = path }
    let paths = type.files(in: value).filter { own[$0] == nil && !files.shared.contains($0) }
    send(paths[...], [], script) { [self] result in
      switch result {
      case .success(let sent): then(.success((value.replacingPaths(own), sent)))
      case .failure(let error):
        let text: ByteString =
          "can't send the file of <\(key)> from \(machine): \(error.message)"
        then(.failure(error.with { $0.message = text }))
      }
    }
  }

  private func send(
    _ rest: ArraySlice<ByteString>, _ done: [RemoteGivenFile], _ script: ByteString,
    _ then: @escaping (Result<[RemoteGivenFile], FlowError>) -> Void
  ) {
    guard let path = rest.first else { return then(.success(done)) }
    count += 1
    let object: ByteString =
      "result-\(script)-\(UInt64.random(in: 0 ... .max).hexadecimal)-\(count)"
    objects.putFile(object, path) { [self] result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(let info):
        let file = RemoteGivenFile(path: path, object: object, digest: info.digest)
        send(rest.dropFirst(), done + [file], script, then)
      }
    }
  }

  /// Deletes objects that no script gets.
  func discard(_ files: [RemoteGivenFile]) {
    for file in files { objects.delete(file.object) { _ in } }
  }

  /// Runs something that blocks.
  private func work<Value: Sendable>(
    _ body: @escaping @Sendable () throws(SystemError) -> Value,
    then: @escaping (Result<Value, FlowError>) -> Void
  ) {
    loop.offload {
      Result { () throws(FlowError) in
        do throws(SystemError) { return try body() } catch { throw .from(error) }
      }
    } then: {
      then($0)
    }
  }
}
