package import FlowEngine
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

// The messages between a script and the nodes that execute its ops. Each begins with `RemoteProtocol.version`.

/// The form of messages, on which both sides have to agree.
package enum RemoteProtocol {
  /// The number of the form of all messages, with the values in them.
  static let version: UInt8 = 5

  /// Programs with the same text understand each other: the number of the messages, the version of flowlua, whose
  /// functions the code uses, and the version of Lua, whose bytecode travels. A part of subjects.
  package static let compatibility: ByteString = {
    let text: ByteString = "\(version)-\(FlowLuaVersion.number)-\(LuaVM.release)"
    return ByteString(text.map { $0 == UInt8(ascii: ".") ? UInt8(ascii: "_") : $0 })
  }()

  /// The bytes of a message.
  static func message(_ content: some ByteCodable) -> [UInt8] {
    var writer = ByteWriter()
    writer.add(byte: version)
    writer.add(content)
    return writer.bytes
  }

  /// Reads a message; nil for bytes that aren't one of this version.
  static func read<Content: ByteCodable>(
    _ bytes: [UInt8], as type: Content.Type = Content.self
  ) -> Content? {
    guard bytes.first == version else { return nil }
    return bytes.withUnsafeBytes {
      Content.decode(UnsafeRawBufferPointer(rebasing: $0.dropFirst()))
    }
  }

  /// A message of several ones: jobs and reports travel together, because a message costs more than its content.
  static func bundle(_ parts: some Collection<[UInt8]>) -> [UInt8] {
    message(parts.map { ByteString($0) })
  }

  /// The messages of a bundle; nil for anything else.
  static func parts(of bytes: [UInt8]) -> [[UInt8]]? {
    read(bytes, as: [ByteString].self)?.map(\.bytes)
  }
}

/// A message between a script and a node.
protocol RemoteMessage: ByteCodable {}

extension RemoteMessage {
  var bytes: [UInt8] { RemoteProtocol.message(self) }

  /// Reads a message; nil for anything else.
  static func read(_ bytes: [UInt8]) -> Self? { RemoteProtocol.read(bytes) }
}

/// An execution of an op, or a call of a function, in the queue.
struct RemoteJob: RemoteMessage, ByteRecord {
  /// Its number among the tasks of its script.
  let number: UInt64
  /// How often its script has put it into the queue, this time included.
  let round: UInt64
  /// The name of the object with its code.
  let code: ByteString
  let settings: Settings
  let arguments: WireBatch
  let kind: WorkerJob.Kind
  let files: RemoteJobFiles
  /// See `KeptExecution.identity`; empty if the op isn't kept.
  var identity: ByteString = ""

  typealias Settings = WorkerConditions

  static let byteForm = ByteForm(RemoteJob.init) {
    ($0.number, $0.round, $0.code, $0.settings, $0.arguments, $0.kind, $0.files, $0.identity)
  }
}

extension WorkerConditions: ByteRecord {
  static let byteForm = ByteForm(
    {
      WorkerConditions(
        gracePeriod: $0, cleanupGrace: $1, logsWaits: $2, hasGlobalModule: $3)
    }, { ($0.gracePeriod, $0.cleanupGrace, $0.logsWaits, $0.hasGlobalModule) })
}

/// A node's report about a job. The first one, without news, says that a worker is about to begin it, or that
/// the node has it.
struct RemoteReport: RemoteMessage, ByteRecord {
  let number: UInt64
  /// Which hand-out of the job it is about: a later one has a greater number, and replaces an earlier one.
  let delivery: UInt64
  /// Where it executes, as `gpu1/3`; before it has begun, the node.
  let lane: ByteString
  /// For how many nanoseconds it has kept a worker, in the last report; else 0.
  var took: Int64 = 0
  let news: [News]
  /// The identity of its job.
  var identity: ByteString = ""
  /// How many reports with news about the hand-out were stored before.
  var place: UInt64 = 0

  enum News: ByteUnion {
    /// An event, so many nanoseconds before the report.
    case event(WorkerReport.JobEvent.What, age: Int64)
    /// It wasn't executed, for this reason: the script puts it into the queue again.
    case returned(ByteString)
    /// Neither the node nor the server has the files with these hashes: the same, once they are sent.
    case missing([ByteString])
    /// An output with files, which the script gets before the value is set.
    case files(ByteString, WireValue, WireBatch, [RemoteGivenFile])

    var startsOver: Bool {
      switch self {
      case .returned, .missing: true
      case .event, .files: false
      }
    }

    var isLast: Bool { if case .event(.ended, _) = self { true } else { startsOver } }

    static let byteCases: [ByteCase<News>] = [
      ByteCase(1, { .event($1, age: $0) }) { news in
        if case .event(let event, let age) = news { (age, event) } else { nil }
      },
      ByteCase(2, News.returned) { if case .returned(let reason) = $0 { reason } else { nil } },
      ByteCase(3, News.missing) { if case .missing(let hashes) = $0 { hashes } else { nil } },
      ByteCase(4, { .files($0, $1, $2, $3) }) { news in
        if case .files(let key, let value, let batch, let files) = news {
          (key, value, batch, files)
        } else {
          nil
        }
      },
    ]
  }

  /// Whether a worker has begun it.
  var isOfWorker: Bool { lane.bytes.contains(UInt8(ascii: "/")) }

  /// Whether it ends with the success of its job.
  var hasSucceeded: Bool {
    if case .event(.ended(nil, _, _), _)? = news.last { true } else { false }
  }

  /// Whether the script puts the job into the queue again.
  var startsOver: Bool { news.last?.startsOver == true }
  /// Whether it is the last one about its hand-out.
  var isLast: Bool { news.last?.isLast == true }

  static let byteForm = ByteForm(RemoteReport.init) {
    ($0.number, $0.delivery, $0.lane, $0.took, $0.news, $0.identity, $0.place)
  }

  /// Reads the reports of a bundle; none for anything else.
  static func readAll(_ bundle: [UInt8]) -> [RemoteReport] {
    (RemoteProtocol.parts(of: bundle) ?? []).compactMap { read($0) }
  }
}

/// A node's question to a script.
enum RemoteQuestion: RemoteMessage, ByteUnion {
  /// Which jobs the node is to execute, that were handed out before: some of them may have ended. If they were lost, one
  /// of them may be what has ended their node.
  case jobs([Asked], wereLost: Bool)
  /// Whether the script has taken these reports, which aren't in the stream.
  case reports([UInt8])

  /// A job, and how often its script had put it into the queue.
  struct Asked: ByteRecord {
    let number: UInt64
    let round: UInt64

    static let byteForm = ByteForm(Asked.init) { ($0.number, $0.round) }
  }

  static let byteCases: [ByteCase<RemoteQuestion>] = [
    ByteCase(1, { .jobs($1, wereLost: $0) }) { question in
      if case .jobs(let jobs, let wereLost) = question { (wereLost, jobs) } else { nil }
    },
    ByteCase(2, { (bundle: ByteString) in .reports(bundle.bytes) }) {
      if case .reports(let bundle) = $0 { ByteString(bundle) } else { nil }
    },
  ]

  /// The reply with the numbers of those jobs; with none for reports that were taken.
  static func reply(_ numbers: [UInt64]) -> [UInt8] {
    RemoteProtocol.message(numbers)
  }

  /// Reads a reply; nil for anything else.
  static func readReply(_ bytes: [UInt8]) -> [UInt64]? {
    RemoteProtocol.read(bytes)
  }
}

/// A script's request that a job stop, or all of its jobs, because the script ends.
struct RemoteStop: RemoteMessage, ByteRecord {
  /// The number for all jobs.
  static let all = UInt64.max

  let number: UInt64
  /// Hand-outs up to this one.
  let delivery: UInt64
  let error: WireError

  static let byteForm = ByteForm(RemoteStop.init) { ($0.number, $0.delivery, $0.error) }
}

/// A node's description of itself. Its first fields are the same in all versions.
package struct RemoteNodeInfo: Equatable {
  /// A random text, the same as long as the program runs.
  package let id: ByteString
  package let name: ByteString
  /// See `RemoteProtocol.compatibility`.
  package let compatibility: ByteString
  package let version: ByteString
  package let lua: ByteString
  package let workers: Int
  package let tags: [ByteString]
  package let cores: Int
  /// Whether it is about to end, and takes no jobs any more.
  package var isLeaving: Bool
  /// The name of its key; empty without one.
  package var key: ByteString

  /// The reason why it can't execute ops of this program, which has a key of this name; nil if it can.
  func problem(withKey own: ByteString) -> ByteString? {
    if compatibility != RemoteProtocol.compatibility {
      return "it has flowlua \(version) with Lua \(lua)"
    }
    if key == own { return nil }
    if own.isEmpty { return "it has a FLOWLUA_REMOTE_KEY, and here is none" }
    return key.isEmpty ? "it has no FLOWLUA_REMOTE_KEY" : "it has another FLOWLUA_REMOTE_KEY"
  }

  private static let byteForm = ByteForm(
    {
      RemoteNodeInfo(
        id: $0, name: $1, compatibility: $2, version: $3, lua: $4, workers: $5, tags: $8,
        cores: $6, isLeaving: $7, key: "")
    },
    { (info: RemoteNodeInfo) in
      (
        info.id, info.name, info.compatibility, info.version, info.lua, info.workers, info.cores,
        info.isLeaving, info.tags
      )
    })

  var bytes: [UInt8] {
    var writer = ByteWriter()
    Self.byteForm.write(self, to: &writer)
    writer.add(key)
    return writer.bytes
  }

  /// Reads a description; nil for anything else. Fields that later versions add at the end are ignored, and earlier
  /// ones had no key.
  static func read(_ bytes: [UInt8]) -> RemoteNodeInfo? {
    bytes.withUnsafeBytes { raw in
      var reader = ByteReader(raw)
      guard var info = try? byteForm.read(from: &reader) else { return nil }
      if !reader.isAtEnd {
        guard let key = try? reader.text() else { return nil }
        info.key = key
      }
      return info
    }
  }
}
