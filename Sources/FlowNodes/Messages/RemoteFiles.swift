@_spi(Scripting) package import FlowEngine
internal import FlowRemote
internal import FlowScripting

/// A file of the script that an op on another node needs.
struct RemoteNeededFile: Equatable {
  /// As it is in the data of the script.
  let path: ByteString
  let content: Content

  enum Content: Equatable {
    /// An object of the server.
    case object(hash: ByteString, size: Int64)
    /// A file below a folder that all nodes have.
    case shared
  }

  /// The name of the object with a content.
  static func object(_ hash: ByteString) -> ByteString { "file-\(hash)" }
}

/// A file that an op has given on another node.
struct RemoteGivenFile: Equatable {
  /// As the op has given it.
  let path: ByteString
  /// The name of the object.
  let object: ByteString
  /// Its digest.
  let digest: ByteString
}

/// A need of an op, and the texts in its value that are paths of files.
typealias RemoteFilePaths = (key: ByteString, paths: [ByteString])

/// The files of a job: which values of its data are paths, and which outputs will be.
struct RemoteJobFiles {
  struct Needed {
    let key: ByteString
    let files: [RemoteNeededFile]
  }

  var needs: [Needed] = []
  /// The outputs of which the type has files.
  var gives: [WorkerDeclaration] = []
  var shared = RemoteSharedFolders()

  /// The type of an output with files; nil for other keys.
  func type(ofGiven key: ByteString) -> FlowValueType? {
    guard let declared = gives.first(where: { $0.name == key }) else { return nil }
    return try? FlowValueType.parse(declared.type)
  }
}

extension OpContext {
  /// The files that the op needs.
  var neededFiles: [RemoteFilePaths] {
    op.needs.filter(\.type.hasFiles).compactMap { need in
      let value = bucket.get(bucket.keys.intern(need.name))
      let paths = value.map { need.type.files(in: $0) } ?? []
      return paths.isEmpty ? nil : (need.name, paths)
    }
  }

  /// The outputs of which the type has files.
  var givenFiles: [WorkerDeclaration] {
    op.gives.filter { $0.type.hasFiles && !$0.type.isTested }.map {
      WorkerDeclaration(name: $0.name, type: $0.type.name)
    }
  }
}

/// The folders whose files all nodes have at the same paths.
package struct RemoteSharedFolders: Sendable, Equatable {
  private(set) var folders: [ByteString] = []

  package init() {}

  /// Adds the path of a folder.
  ///
  /// - Throws: A `FlowError` of kind `usage` for one that isn't absolute.
  package mutating func add(_ path: ByteString) throws(FlowError) {
    guard path.bytes.first == UInt8(ascii: "/"), Self.isPlain(path) else {
      throw .usage(
        "'\(path)' can't be a shared folder: an absolute path without '..' is expected")
    }
    folders.append(path)
  }

  init(trusting folders: [ByteString]) {
    self.folders = folders
  }

  private static func parts(_ path: ByteString) -> [ArraySlice<UInt8>] {
    path.bytes.split(separator: UInt8(ascii: "/")).filter { !$0.equals(".") }
  }

  /// Whether a path doesn't lead upwards.
  static func isPlain(_ path: ByteString) -> Bool {
    !path.bytes.contains(0) && !parts(path).contains { $0.equals("..") }
  }

  /// Whether a path names one of the folders, or is below it.
  func contains(_ path: ByteString) -> Bool {
    guard path.bytes.first == UInt8(ascii: "/"), Self.isPlain(path) else { return false }
    let parts = Self.parts(path)
    return folders.contains { parts.starts(with: Self.parts($0)) }
  }
}

extension FlowValue {
  /// The value with other paths: for a text, and for lists of texts.
  func replacingPaths(_ paths: [ByteString: ByteString], depth: Int = 16) -> FlowValue {
    switch self {
    case .bytes(let path): return .bytes(paths[path] ?? path)
    case .opaque(let opaque):
      if isSecret { return .secret(plain.replacingPaths(paths, depth: depth)) }
      guard depth > 0, let count = opaque.listCount() else { return self }
      return .opaque(
        ListValue(
          (0..<count).map {
            opaque.element(at: $0).replacingPaths(paths, depth: depth - 1)
          }))
    default: return self
    }
  }
}

// MARK: As bytes

extension RemoteJobFiles: ByteRecord {
  static let byteForm = ByteForm(
    { RemoteJobFiles(needs: $0, gives: $1, shared: RemoteSharedFolders(trusting: $2)) },
    { (files: RemoteJobFiles) in (files.needs, files.gives, files.shared.folders) })
}

extension RemoteJobFiles.Needed: ByteRecord {
  static let byteForm = ByteForm(RemoteJobFiles.Needed.init) { ($0.key, $0.files) }
}

extension RemoteNeededFile: ByteRecord {
  static let byteForm = ByteForm(RemoteNeededFile.init) { ($0.path, $0.content) }
}

extension RemoteNeededFile.Content: ByteUnion {
  static let byteCases: [ByteCase<RemoteNeededFile.Content>] = [
    ByteCase(0, { .shared }) { $0 == .shared ? () : nil },
    ByteCase(
      1,
      { (hash: ByteString, size: Int64) throws(MalformedBytes) in
        guard FileCache.isHash(hash), size >= 0 else { throw MalformedBytes() }
        return .object(hash: hash, size: size)
      }
    ) { content in
      if case .object(let hash, let size) = content { (hash, size) } else { nil }
    },
  ]
}

extension RemoteGivenFile: ByteRecord {
  static let byteForm = ByteForm(RemoteGivenFile.init) { ($0.path, $0.object, $0.digest) }
}

extension WorkerDeclaration: ByteRecord {
  static let byteForm = ByteForm({ WorkerDeclaration(name: $0, type: $1) }) { ($0.name, $0.type) }
}

/// The files of a script that ops on other nodes need, as objects of the server: each content is sent once.
///
/// Large ones are sent when a node doesn't have them from an earlier script.
/// The objects that it has stored are deleted when the script ends. Confined to the thread of the host's loop.
final class RemoteUploads {
  private let objects: ObjectStore
  private let loop: FlowEventLoop
  private let shared: RemoteSharedFolders
  /// The hashes of files as they were, so that one that didn't change isn't read again.
  private var hashes: [ByteString: (stamp: FileStamp, hash: ByteString)] = [:]
  /// The contents that the server has, or that are sent: their objects, and whether this script has stored them.
  private let contents: OncePerKey<ByteString, (info: ObjectInfo, isSent: Bool)>
  /// Large contents that a node doesn't have.
  private var required: Set<ByteString> = []

  /// The most bytes of a file that is sent although nodes may have it: that costs less than the question.
  private static let smallSize: Int64 = 1 << 20

  init(_ objects: ObjectStore, _ loop: FlowEventLoop, _ shared: RemoteSharedFolders) {
    self.objects = objects
    self.loop = loop
    self.shared = shared
    contents = OncePerKey(loop)
  }

  /// Brings all files of some needs to the server.
  func prepare(
    _ needs: [RemoteFilePaths]
  ) async throws(FlowError) -> [RemoteJobFiles.Needed] {
    var prepared: [RemoteJobFiles.Needed] = []
    for need in needs {
      var files: [RemoteNeededFile] = []
      try await naming("can't send the file of <\(need.key)>") {
        for path in need.paths {
          if shared.contains(path) {
            files.append(RemoteNeededFile(path: path, content: .shared))
          } else {
            files.append(try await prepare(path))
          }
        }
      }
      prepared.append(RemoteJobFiles.Needed(key: need.key, files: files))
    }
    return prepared
  }

  private func prepare(_ path: ByteString) async throws(FlowError) -> RemoteNeededFile {
    let known = hashes[path]
    let (hash, stamp) = try await loop.onHelperThread { try Self.hash(path, known) }
    hashes[path] = (stamp, hash)
    if stamp.size <= Self.smallSize || required.contains(hash) { try await send(path, hash) }
    return RemoteNeededFile(path: path, content: .object(hash: hash, size: stamp.size))
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

  private func send(_ path: ByteString, _ hash: ByteString) async throws(FlowError) {
    _ = try await naming("'\(path)'") {
      try await contents.value(hash) {
        try await objects.putFile(RemoteNeededFile.object(hash), path, hash: hash)
      }
    }
  }

  /// Notes that a node needs a content that the server doesn't have; false if it had been there.
  func require(_ hash: ByteString) -> Bool {
    required.insert(hash)
    guard contents[hash] != nil else { return true }
    contents.forget(hash)
    return false
  }

  /// Deletes the objects that this script has stored.
  func removeStored() {
    for case let content? in contents.keys.map({ contents[$0] }) where content.isSent {
      objects.discard(content.info)
    }
  }
}

/// Performs code whose errors then begin with what failed.
func naming<Value>(
  _ failure: @autoclosure () -> ByteString, _ body: () async throws -> Value
) async throws(FlowError) -> Value {
  do { return try await body() } catch {
    let error = FlowError.from(error)
    throw error.with { $0.message = "\(failure()): \(error.message)" }
  }
}

/// Values that are made once for each key: by the first one who needs it, while the others wait. Confined to the thread
/// of a loop.
final class OncePerKey<Key: Hashable, Value> {
  private final class Work {
    var value: Value?
    var waiting: [(Result<Value, FlowError>) -> Void] = []
  }

  // Unowned: its owner belongs to the loop.
  private unowned let loop: FlowEventLoop
  private let keepsValues: Bool
  private var works: [Key: Work] = [:]

  /// - Parameters:
  ///   - loop: The loop.
  ///   - keepsValues: Whether a value stays after those have it who waited.
  init(_ loop: FlowEventLoop, keepsValues: Bool = true) {
    self.loop = loop
    self.keepsValues = keepsValues
  }

  /// The keys of what is made, or being made.
  var keys: [Key] { Array(works.keys) }

  /// The value of a key, if it is made.
  subscript(key: Key) -> Value? { works[key]?.value }

  /// Lets the value be made again.
  func forget(_ key: Key) { works[key] = nil }

  /// The value of a key, made by `make` if nobody has begun that. After a failure, which all get who wait, the next one
  /// makes it again.
  @discardableResult
  func value(
    _ key: Key, _ make: () async throws -> Value
  ) async throws(FlowError) -> Value {
    if let work = works[key] {
      if let value = work.value { return value }
      let result = await loop.value { work.waiting.append($0) }
      guard let result else { throw .cancelled() }
      return try result.get()
    }
    let work = Work()
    works[key] = work
    let result: Result<Value, FlowError>
    do { result = .success(try await make()) } catch { result = .failure(.from(error)) }
    if keepsValues { work.value = try? result.get() }
    if work.value == nil, works[key] === work { works[key] = nil }
    let waiting = work.waiting
    work.waiting = []
    for then in waiting { then(result) }
    return try result.get()
  }
}

extension Result where Failure == FlowError {
  /// The error; nil for a success.
  var failure: FlowError? {
    if case .failure(let error) = self { error } else { nil }
  }
}
