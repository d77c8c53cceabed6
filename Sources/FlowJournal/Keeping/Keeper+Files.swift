internal import FlowEngine
internal import FlowLoop
internal import FlowSystem

// Files that ops are given, and that they make: they count by content.
extension Keeper {
  /// Begins the name of the input that stands for the contents of files; hardly a key's.
  static let contentMark: ByteString = "\u{0}"

  /// The digests of what a work is given: those of the values, and then those of the contents of files.
  ///
  /// - Throws: `UnreadFiles` when the content of a file has to be read first.
  func inputs(of work: KeptWork) throws -> [KeptInput] {
    if let key = work.cacheKey {
      return [KeptInput(name: CachePolicy.keyName, digest: digest(of: key))]
    }
    var inputs = try work.inputs.map {
      KeptInput(name: $0.name, digest: try store.digest(of: $0.value) ?? .incomparable)
    }
    var unread: Set<ByteString> = []
    for (input, paths) in work.inputFiles {
      var all = Digest(high: UInt64(paths.count), low: 2)
      for path in paths where all != .incomparable {
        switch try content(at: path, for: work) {
        case .digest(let digest)?: all = all.followed(by: digest)
        case .missing?, .unreadable?: all = .incomparable
        case nil: unread.insert(path)
        }
      }
      inputs.append(KeptInput(name: Self.contentMark + work.inputs[input].name, digest: all))
    }
    if unread.isEmpty { return inputs }
    throw UnreadFiles(paths: unread)
  }

  /// Why the files that a finished op has made aren't what they were, as a reason to execute it again; nil when they
  /// are.
  ///
  /// - Throws: `UnreadFiles` when the content of a file has to be read first.
  func fileChange(since record: OpRecord, _ work: KeptWork) throws -> ByteString? {
    var unread: Set<ByteString> = []
    for write in record.writes {
      guard let files = write.files else {
        let isFile = work.outputFiles.contains { work.loop.keys.name(of: $0.key) == write.name }
        if isFile, case .removed = write.content { continue }
        if isFile { return "<\(write.name)> wasn't kept as a file" }
        continue
      }
      for file in files {
        let shown: ByteString = "<\(write.name)> (\(work.loop.secrets.redacted(file.path)))"
        switch try content(at: file.path, for: work) {
        case .digest(file.content)?: break
        case .digest?: return "\(shown) was changed"
        case .missing?: return "\(shown) was removed"
        case .unreadable?: return "\(shown) can't be read"
        case nil: unread.insert(file.path)
        }
      }
    }
    if unread.isEmpty { return nil }
    throw UnreadFiles(paths: unread)
  }

  /// The digest of a file that an op depends on; nil for one that can't be read.
  static func digest(ofDependency content: FileContent?) -> Digest? {
    switch content {
    case .digest(let digest)?: digest
    case .missing?: Digest(high: 0, low: 3)
    case .unreadable?, nil: nil
    }
  }

  func content(at path: ByteString, for work: KeptWork) throws -> FileContent? {
    // First what was read for this decision: a file that changes all the time would be read again and again.
    try (work.reading as? FileReading)?.content(at: path) ?? files.content(at: path)
  }

  /// Reads files that an op has made, or depends on; calls `then` on the loop's thread, perhaps at once.
  func readFiles(
    at paths: Set<ByteString>, on loop: FlowEventLoop,
    then: @escaping (Result<[ByteString: FileContent], FlowError>) -> Void
  ) {
    var unread: Set<ByteString> = []
    var contents: [ByteString: FileContent] = [:]
    for path in paths {
      do {
        if let content = try files.content(at: path) {
          contents[path] = content
        } else {
          unread.insert(path)
        }
      } catch {
        return then(.failure(.from(error)))
      }
    }
    if unread.isEmpty { return then(.success(contents)) }
    let reading = FileReading(unread, files, on: loop)
    reading.begin {
      for path in unread { contents[path] = reading.content(at: path) }
      then(.success(contents))
    }
  }
}

extension KeptInput {
  /// A file that an op depends on, though it isn't among its inputs.
  static func dependency(_ path: ByteString, _ content: Digest) -> KeptInput {
    KeptInput(name: Keeper.contentMark + path, digest: content)
  }

  /// A temporary folder that is named by what an op has set.
  static func folder(_ path: ByteString) -> KeptInput {
    KeptInput(name: folderMark + path, digest: folderThere)
  }

  private static let folderMark = Keeper.contentMark + Keeper.contentMark
  /// The digest of a temporary folder that is there.
  private static let folderThere = Digest(high: 1, low: 3)

  /// The temporary folder that it is, among the reads of a record.
  var folder: ByteString? {
    name.hasPrefix(Self.folderMark) ? ByteString(name.bytes.dropFirst(2)) : nil
  }

  /// Whether it is a temporary folder that has gone.
  var isFolderGone: Bool {
    guard let folder else { return false }
    do throws(SystemError) {
      return try FileStamp.read(folder) == nil
    } catch {
      return true
    }
  }

  /// Whether it is a file or a folder, among the reads of a record.
  var isDependency: Bool { name.bytes.first == 0 }
}
