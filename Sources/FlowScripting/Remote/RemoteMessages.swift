package import FlowEngine
@_spi(Scripting) internal import LuaVM

// The messages between a script and the machines that execute its ops. Each begins with `RemoteProtocol.version`.

/// What both sides have to agree on.
package enum RemoteProtocol {
  /// The number of the form of all messages, with the values in them.
  static let version: UInt8 = 2

  /// Programs with the same text understand each other: the number of the messages, the version of flowlua, whose
  /// functions the code uses, and that of Lua, whose bytecode travels. A part of subjects.
  package static let compatibility: ByteString = {
    let text: ByteString = "\(version)-\(FlowLuaVersion.number)-\(LuaVM.release)"
    return ByteString(text.map { $0 == UInt8(ascii: ".") ? UInt8(ascii: "_") : $0 })
  }()

  /// Begins a message.
  static func message(_ write: (inout ByteWriter) -> Void) -> [UInt8] {
    var writer = ByteWriter()
    writer.add(byte: version)
    write(&writer)
    return writer.bytes
  }

  /// Reads a message; nil for bytes that aren't one of this version.
  static func read<Message>(
    _ bytes: [UInt8], _ read: (inout ByteReader) throws(MalformedBytes) -> Message
  ) -> Message? {
    bytes.withUnsafeBytes { raw in
      var reader = ByteReader(raw)
      do throws(MalformedBytes) {
        guard try reader.byte() == version else { return nil }
        let message = try read(&reader)
        return reader.isAtEnd ? message : nil
      } catch {
        return nil
      }
    }
  }
}

extension RemoteProtocol {
  /// A message of several ones: jobs and reports travel together, because a message costs more than what it has.
  static func bundle(_ parts: some Collection<[UInt8]>) -> [UInt8] {
    message { writer in
      writer.add(count: parts.count)
      for part in parts { part.withUnsafeBytes { writer.add($0) } }
    }
  }

  /// The messages of a bundle; nil for anything else.
  static func parts(of bytes: [UInt8]) -> [[UInt8]]? {
    read(bytes) { reader throws(MalformedBytes) in
      try reader.list { (r) throws(MalformedBytes) in Array(try r.part()) }
    }
  }
}

/// An execution of an op, or a call of a function, in the queue.
struct RemoteJob {
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

  /// What a worker has from the script's loop.
  struct Settings: Equatable {
    let gracePeriod: Duration
    let cleanupGrace: Duration
    let logsWaits: Bool
    let hasGlobalModule: Bool
  }

  var bytes: [UInt8] {
    RemoteProtocol.message { writer in
      writer.add(number)
      writer.add(round)
      writer.add(code)
      writer.add(settings.gracePeriod)
      writer.add(settings.cleanupGrace)
      writer.add(settings.logsWaits)
      writer.add(settings.hasGlobalModule)
      writer.add(arguments)
      writer.add(kind)
      writer.add(files)
      writer.add(identity)
    }
  }

  /// Reads a job; nil for anything else.
  static func read(_ bytes: [UInt8]) -> RemoteJob? {
    RemoteProtocol.read(bytes) { reader throws(MalformedBytes) in
      let number = try reader.number()
      let round = try reader.number()
      let code = try reader.text()
      let settings = Settings(
        gracePeriod: try reader.duration(), cleanupGrace: try reader.duration(),
        logsWaits: try reader.flag(), hasGlobalModule: try reader.flag())
      return RemoteJob(
        number: number, round: round, code: code, settings: settings, arguments: try reader.batch(),
        kind: try reader.jobKind(), files: try reader.jobFiles(), identity: try reader.text())
    }
  }
}

/// What a machine reports about a job. The first one, without news, says that a worker is about to begin it, or that
/// the machine has it.
struct RemoteReport {
  let number: UInt64
  /// Which hand-out of the job it is about: a later one has a greater number, and replaces an earlier one.
  let delivery: UInt64
  /// Where it executes, as `gpu1/3`; before it has begun, the machine.
  let lane: ByteString
  /// For how many nanoseconds it has kept a worker, in the last report; else 0.
  var took: Int64 = 0
  let news: [News]
  /// That of its job.
  var identity: ByteString = ""
  /// How many reports with news about the hand-out were stored before.
  var place: UInt64 = 0

  enum News {
    /// An event, so many nanoseconds before the report.
    case event(WorkerReport.JobEvent.What, age: Int64)
    /// It wasn't executed, for this reason: the script puts it into the queue again.
    case returned(ByteString)
    /// Neither the machine nor the server has the files with these hashes: the same, once they are sent.
    case missing([ByteString])
    /// An output with files, which the script gets before the value is set.
    case files(ByteString, WireValue, WireBatch, [RemoteGivenFile])
  }

  /// Whether a worker has begun it.
  var isOfWorker: Bool { lane.bytes.contains(UInt8(ascii: "/")) }

  /// Whether it ends with the success of its job.
  var hasSucceeded: Bool {
    if case .event(.ended(nil, _, _), _)? = news.last { true } else { false }
  }

  /// Whether the script puts the job into the queue again.
  var startsOver: Bool {
    switch news.last {
    case .returned?, .missing?: true
    default: false
    }
  }

  /// Whether it is the last one about its hand-out.
  var isLast: Bool {
    if case .event(.ended, _)? = news.last { return true }
    return startsOver
  }

  var bytes: [UInt8] {
    RemoteProtocol.message { writer in
      writer.add(number)
      writer.add(delivery)
      writer.add(lane)
      writer.add(fixed: took)
      writer.add(identity)
      writer.add(place)
      writer.add(list: news) { writer, news in
        switch news {
        case .event(let event, let age):
          writer.add(byte: 1)
          writer.add(fixed: age)
          writer.add(event)
        case .returned(let reason):
          writer.add(byte: 2)
          writer.add(reason)
        case .missing(let hashes):
          writer.add(byte: 3)
          writer.add(list: hashes) { $0.add($1) }
        case .files(let key, let value, let batch, let files):
          writer.add(byte: 4)
          writer.add(key)
          writer.add(value)
          writer.add(batch)
          writer.add(list: files) { $0.add($1) }
        }
      }
    }
  }

  /// Reads the reports of a bundle; none for anything else.
  static func readAll(_ bundle: [UInt8]) -> [RemoteReport] {
    (RemoteProtocol.parts(of: bundle) ?? []).compactMap { read($0) }
  }

  /// Reads a report; nil for anything else.
  static func read(_ bytes: [UInt8]) -> RemoteReport? {
    RemoteProtocol.read(bytes) { reader throws(MalformedBytes) in
      let number = try reader.number()
      let delivery = try reader.number()
      let lane = try reader.text()
      let took = try reader.fixed()
      let identity = try reader.text()
      let place = try reader.number()
      let news = try reader.list { (r) throws(MalformedBytes) -> News in
        switch try r.byte() {
        case 1:
          let age = try r.fixed()
          return .event(try r.jobEvent(), age: age)
        case 2: return .returned(try r.text())
        case 3: return .missing(try r.list { (r) throws(MalformedBytes) in try r.text() })
        case 4:
          return .files(
            try r.text(), try r.wireValue(), try r.batch(),
            try r.list { (r) throws(MalformedBytes) in try r.givenFile() })
        default: throw MalformedBytes()
        }
      }
      return RemoteReport(
        number: number, delivery: delivery, lane: lane, took: took, news: news, identity: identity,
        place: place)
    }
  }
}

/// A machine's question to a script.
enum RemoteQuestion {
  /// Which jobs the machine is to execute, that were handed out before: some of them may have ended. If they were lost, one
  /// of them may be what has ended their machine.
  case jobs([(number: UInt64, round: UInt64)], wereLost: Bool)
  /// Whether the script has taken these reports, which aren't in the stream. It takes them once it has those with numbers up
  /// to this one there.
  case reports([UInt8], after: UInt64)

  var bytes: [UInt8] {
    RemoteProtocol.message { writer in
      switch self {
      case .jobs(let jobs, let wereLost):
        writer.add(byte: 1)
        writer.add(wereLost)
        writer.add(list: jobs) { writer, job in
          writer.add(job.number)
          writer.add(job.round)
        }
      case .reports(let bundle, let number):
        writer.add(byte: 2)
        writer.add(number)
        bundle.withUnsafeBytes { writer.add($0) }
      }
    }
  }

  /// Reads a question; nil for anything else.
  static func read(_ bytes: [UInt8]) -> RemoteQuestion? {
    RemoteProtocol.read(bytes) { reader throws(MalformedBytes) in
      switch try reader.byte() {
      case 1:
        let wereLost = try reader.flag()
        return .jobs(
          try reader.list { (r) throws(MalformedBytes) in (try r.number(), try r.number()) },
          wereLost: wereLost)
      case 2:
        let number = try reader.number()
        return .reports(Array(try reader.part()), after: number)
      default: throw MalformedBytes()
      }
    }
  }

  /// The reply with the numbers of those jobs; with none for reports that were taken.
  static func reply(_ numbers: [UInt64]) -> [UInt8] {
    RemoteProtocol.message { writer in writer.add(list: numbers) { $0.add($1) } }
  }

  /// Reads a reply; nil for anything else.
  static func readReply(_ bytes: [UInt8]) -> [UInt64]? {
    RemoteProtocol.read(bytes) { reader throws(MalformedBytes) in
      try reader.list { (r) throws(MalformedBytes) in try r.number() }
    }
  }
}

/// A script's request that a job stop, or all of its jobs, because the script ends.
struct RemoteStop {
  /// The number for all jobs.
  static let all = UInt64.max

  let number: UInt64
  /// Hand-outs up to this one.
  let delivery: UInt64
  let error: WireError

  var bytes: [UInt8] {
    RemoteProtocol.message { writer in
      writer.add(number)
      writer.add(delivery)
      writer.add(error)
    }
  }

  /// Reads a request; nil for anything else.
  static func read(_ bytes: [UInt8]) -> RemoteStop? {
    RemoteProtocol.read(bytes) { reader throws(MalformedBytes) in
      RemoteStop(
        number: try reader.number(), delivery: try reader.number(), error: try reader.wireError())
    }
  }
}

/// What a machine says of itself. Its first fields are the same in all versions.
package struct RemoteMachineInfo: Equatable {
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
  package let isLeaving: Bool
  /// The name of its key; empty without one.
  package let key: ByteString

  /// Whether it can execute ops of this program, which has a key of this name.
  func isCompatible(withKey own: ByteString) -> Bool {
    compatibility == RemoteProtocol.compatibility && key == own
  }

  /// The reason why it can't execute ops of this program.
  func problem(withKey own: ByteString) -> ByteString {
    if compatibility != RemoteProtocol.compatibility {
      return "it has flowlua \(version) with Lua \(lua)"
    }
    if own.isEmpty { return "it has a FLOWLUA_REMOTE_KEY, and here is none" }
    return key.isEmpty ? "it has no FLOWLUA_REMOTE_KEY" : "it has another FLOWLUA_REMOTE_KEY"
  }

  var bytes: [UInt8] {
    var writer = ByteWriter()
    for text in [id, name, compatibility, version, lua] { writer.add(text) }
    writer.add(count: workers)
    writer.add(count: cores)
    writer.add(isLeaving)
    writer.add(list: tags) { $0.add($1) }
    writer.add(key)
    return writer.bytes
  }

  /// Reads a description; nil for anything else. What later versions add at the end is ignored.
  static func read(_ bytes: [UInt8]) -> RemoteMachineInfo? {
    bytes.withUnsafeBytes { raw in
      var reader = ByteReader(raw)
      do throws(MalformedBytes) {
        let (id, name, compatibility) = (
          try reader.text(), try reader.text(), try reader.text()
        )
        let (version, lua) = (try reader.text(), try reader.text())
        let (workers, cores) = (try reader.integer(), try reader.integer())
        let isLeaving = try reader.flag()
        let tags = try reader.list { (r) throws(MalformedBytes) in try r.text() }
        let key = reader.isAtEnd ? "" : try reader.text()
        return RemoteMachineInfo(
          id: id, name: name, compatibility: compatibility, version: version, lua: lua,
          workers: workers, tags: tags, cores: cores, isLeaving: isLeaving, key: key)
      } catch {
        return nil
      }
    }
  }
}
