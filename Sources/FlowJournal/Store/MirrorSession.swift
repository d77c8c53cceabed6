internal import FlowSystem
internal import FlowEngine

/// Publishes what is written about one run, on the thread of its writer.
final class MirrorSession {
  private let target: MirrorTarget
  private let run: MirroredRun
  private let number: Int64
  private let folder: ByteString
  private let epoch: Int64
  private var open: (any MirrorConnection)?
  private var last: UInt64

  /// How often this process gives a sign of life, in seconds.
  static let interval = 1.0

  init(_ mirror: MirrorTarget, _ target: RunTarget) {
    self.target = mirror
    run = MirroredRun(script: mirror.mirror.script, id: target.run)
    number = target.number
    folder = target.folder
    epoch = target.epoch
    last = mirror.last
  }

  /// The numbers of the run's first message and of its last one.
  var position: (first: UInt64, last: UInt64) { (target.first, last) }

  private func connect() throws(FlowError) -> any MirrorConnection {
    if let open { return open }
    let made = try target.mirror.connect()
    open = made
    return made
  }

  /// Publishes commands as one message; the server has it when this returns.
  func publish(
    _ commands: [RunCommand], _ digests: DigestMaker, isLast: () -> Bool
  ) throws(FlowError) {
    var message = MirrorMessage(.held, epoch: epoch, first: target.first)
    var isAbout = false
    for command in commands {
      switch command {
      case .record(var record):
        record.id -= RecordTable.numbers(of: number).lowerBound
        try load(&record, digests)
        message.records.append(record)
        isAbout = true
      case .code(let code): message.codes.append(code)
      case .end(let how):
        message.state = how == .finished ? .finished : .left
        isAbout = true
      // The files of one machine.
      case .file: break
      }
    }
    guard isAbout else { return }
    let connection = try connect()
    let reply: MirrorReply
    do throws(FlowError) {
      reply = try connection.publish(message.bytes, of: run, after: last, isLast: isLast)
    } catch {
      throw StoreProblem.other.error(
        "can't keep run \(run.id) on the server: \(error.message)")
    }
    switch reply {
    case .stored(let sequence): last = sequence
    case .outdated(let other):
      throw StoreProblem.fenced.error(Self.sentence(about: other, run, at: connection.place))
    }
  }

  /// Why a process may write nothing more about a run.
  private static func sentence(
    about message: MirroredBytes?, _ run: MirroredRun, at place: ByteString
  ) -> ByteString {
    guard let message else {
      return "run \(run.id) was removed from the server \(place) while it was executed"
    }
    guard let other = message.bytes.flatMap({ MirrorMessage($0) }) else {
      return "run \(run.id) was continued by another process, so this one can't keep anything more"
    }
    return "run \(run.id) was continued by process \(other.holder.pid) on \(other.holder.host), "
      + "so this process can't keep anything more"
  }

  /// Puts the values that are in files of the store into a record.
  private func load(_ record: inout OpRecord, _ digests: DigestMaker) throws(FlowError) {
    for index in record.writes.indices {
      guard case .file(let file) = record.writes[index].content else { continue }
      record.writes[index].content = .bytes(try ValueFiles.read(file, in: folder, with: digests))
    }
  }

  /// Says that this process executes the run.
  func beat() {
    // A server that is away is reported by the next message.
    (try? connect())?.beat(run)
  }

  func close() {
    open?.close()
    open = nil
  }
}

/// How far the runs of a store are kept on a server, as rows of a table. Only a store that is the working copy of a
/// server has it.
enum MirrorTable {
  /// Makes the table unless it exists.
  static func make(in database: StoreDatabase) throws(FlowError) {
    try database.execute(
      """
      CREATE TABLE IF NOT EXISTS mirrored(
        run INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL,
        is_fetched INTEGER NOT NULL
      ) STRICT
      """)
  }

  /// Notes how far a run is kept: the numbers of its first message and of its last one. If it was fetched, the process
  /// that the store says executes it may use another store.
  static func note(
    _ run: Int64, _ position: (first: UInt64, last: UInt64), isFetched: Bool = false,
    in database: StoreDatabase
  ) throws(FlowError) {
    try database.prepare(
      "INSERT OR REPLACE INTO mirrored VALUES(?1, ?2, ?3, ?4)", run,
      Int64(bitPattern: position.first), Int64(bitPattern: position.last),
      isFetched ? 1 : 0 as Int64
    ).run()
  }

  /// The number of the last message that a run in the store has, and whether it was fetched; nil for a run that no
  /// server has.
  static func position(
    of run: Int64, in database: StoreDatabase
  ) throws(FlowError) -> (last: UInt64, isFetched: Bool)? {
    let select = try database.prepare("SELECT last, is_fetched FROM mirrored WHERE run = ?1", run)
    return try select.first { (UInt64(bitPattern: $0.integer(0)), $0.integer(1) != 0) }
  }

  /// Forgets how far a run is kept, if there is a table.
  static func remove(_ run: Int64, in database: StoreDatabase) throws(FlowError) {
    let table = try database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'mirrored'")
    guard try table.first({ _ in true }) != nil else { return }
    try database.prepare("DELETE FROM mirrored WHERE run = ?1", run).run()
  }
}
