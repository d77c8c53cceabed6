internal import FlowEngine
internal import FlowRemote

/// The files of a script that ops on other machines need, as objects of the server: each content is sent once.
///
/// Large ones are sent when a machine doesn't have them from an earlier script.
/// The objects that it has stored are deleted when the script ends. Confined to the thread of the host's loop.
final class RemoteUploads {
  private let objects: ObjectStore
  private let loop: EventLoop
  private let shared: RemoteSharedFolders
  /// The hashes of files as they were, so that one that didn't change isn't read again.
  private var hashes: [ByteString: (stamp: FileStamp, hash: ByteString)] = [:]
  /// The contents that the server has, or that are sent.
  private let contents = OncePerKey<ByteString>()
  /// Large contents that a machine doesn't have.
  private var required: Set<ByteString> = []
  /// The objects that this script has stored.
  private var stored: [ByteString: ObjectInfo] = [:]

  /// The most bytes of a file that is sent although machines may have it: that costs less than the question.
  private static let smallSize: Int64 = 1 << 20

  init(_ objects: ObjectStore, _ loop: EventLoop, _ shared: RemoteSharedFolders) {
    self.objects = objects
    self.loop = loop
    self.shared = shared
  }

  /// Brings all files of some needs to the server.
  func prepare(
    _ needs: [RemoteOpFiles.Need],
    then: @escaping (Result<[RemoteJobFiles.Needed], FlowError>) -> Void
  ) {
    prepare(needs[...], [], then)
  }

  private func prepare(
    _ rest: ArraySlice<RemoteOpFiles.Need>, _ done: [RemoteJobFiles.Needed],
    _ then: @escaping (Result<[RemoteJobFiles.Needed], FlowError>) -> Void
  ) {
    guard let need = rest.first else { return then(.success(done)) }
    prepare(need.paths, Files()) { [self] result in
      switch result {
      case .failure(let error):
        then(
          .failure(
            error.with {
              $0.message = "can't send the file of <\(need.key)>: \(error.messageBytes)"
            }))
      case .success(let files):
        prepare(rest.dropFirst(), done + [RemoteJobFiles.Needed(key: need.key, files: files)], then)
      }
    }
  }

  /// The files of a need so far.
  private final class Files {
    var all: [RemoteNeededFile] = []
  }

  private func prepare(
    _ paths: [ByteString], _ done: Files,
    _ then: @escaping (Result<[RemoteNeededFile], FlowError>) -> Void
  ) {
    // Without a recursion: there may be any number of these.
    while done.all.count < paths.count, shared.contains(paths[done.all.count]) {
      done.all.append(RemoteNeededFile(path: paths[done.all.count], content: .shared))
    }
    guard done.all.count < paths.count else { return then(.success(done.all)) }
    prepare(paths[done.all.count]) { [self] result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(let file):
        done.all.append(file)
        prepare(paths, done, then)
      }
    }
  }

  private func prepare(
    _ path: ByteString, _ then: @escaping (Result<RemoteNeededFile, FlowError>) -> Void
  ) {
    let known = hashes[path]
    loop.offload {
      Result { () throws(FlowError) in try Self.hash(path, known) }
    } then: { [self] result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(let (hash, stamp)):
        hashes[path] = (stamp, hash)
        let file = RemoteNeededFile(path: path, content: .object(hash: hash, size: stamp.size))
        guard stamp.size <= Self.smallSize || required.contains(hash) else {
          return then(.success(file))
        }
        send(path, hash) { error in then(error.map { .failure($0) } ?? .success(file)) }
      }
    }
  }

  private static func hash(
    _ path: ByteString, _ known: (stamp: FileStamp, hash: ByteString)?
  ) throws(FlowError) -> (hash: ByteString, stamp: FileStamp) {
    do throws(SystemError) {
      guard let now = try FileStamp.read(path) else {
        let kind = try FileStatus.read(path, follows: true)?.kind
        let problem: ByteString = kind.map { "it is a \($0.name)" } ?? "no such file"
        throw SystemError("'\(path)': \(problem)")
      }
      if let known, known.stamp == now { return (known.hash, now) }
      let (hash, stamp) = try FileHash.sha256.digestAndStamp(ofFile: path, Cancellation())
      guard let stamp else { throw SystemError("'\(path)' was changed while it was read") }
      return (hash, stamp)
    } catch {
      throw .from(error)
    }
  }

  private func send(
    _ path: ByteString, _ hash: ByteString, _ then: @escaping (FlowError?) -> Void
  ) {
    contents.need(hash, then: then) { end in
      objects.putFile(RemoteNeededFile.object(hash), path, hash: hash) { [self] result in
        if case .success(let (info, isSent)) = result, isSent { stored[hash] = info }
        end(
          result.failure.map { error in
            error.with { $0.message = "'\(path)': \(error.messageBytes)" }
          })
      }
    }
  }

  /// Notes that a machine needs a content that the server doesn't have; false if it had been there.
  func require(_ hash: ByteString) -> Bool {
    required.insert(hash)
    guard contents.isDone(hash) else { return true }
    contents.forget(hash)
    return false
  }

  /// Deletes the objects that this script has stored.
  func removeStored() {
    for info in stored.values { objects.discard(info) }
    stored = [:]
  }
}
