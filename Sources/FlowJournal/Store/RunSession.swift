internal import FlowSystem
internal import FlowEngine

/// Writes about one run, on the thread of its writer: a connection with its statements.
///
/// After a failure nothing is written any more: what came later would be kept without what came before.
final class RunSession {
  private let target: RunTarget
  private var failure: FlowError?
  private var open: Connection?
  private let mirror: MirrorSession?
  private var lastBeat = 0.0

  /// How long a commit waits for other processes that write into the same store, in milliseconds.
  private static let patience: Int32 = 10_000

  private struct Connection {
    let database: StoreDatabase
    let digests: DigestMaker
    let table: RecordTable
    let files: FileTable
    let codes: CodeTable
    let lease: StoreStatement
    let end: StoreStatement
    let beat: StoreStatement
  }

  init(_ target: RunTarget) {
    self.target = target
    mirror = target.mirror.map { MirrorSession($0, target) }
  }

  /// Writes commands as one transaction. Returns why nothing of them was written; nil for success. `isLast` is called
  /// while a server that keeps the run is away: whether the process is about to end.
  func write(_ commands: [RunCommand], isLast: () -> Bool) -> FlowError? {
    if let failure { return failure }
    do throws(FlowError) {
      let connection = try connect()
      // The server first: the store has nothing that another computer wouldn't find there.
      if let mirror {
        try mirror.publish(commands, connection.digests, isLast: isLast)
        Failpoint.pass()
      }
      try write(try storeValues(of: commands, connection.digests), in: connection)
      return nil
    } catch {
      failure = error
      return error
    }
  }

  /// Writes commands as one transaction, unless that may take long: for a connection that has to be opened, values that
  /// go into files, or another process that is writing. Returns whether they are written.
  func writeAtOnce(_ commands: [RunCommand]) -> Bool {
    guard failure == nil, mirror == nil, let open, !commands.contains(where: \.hasLargeValue) else {
      return false
    }
    open.database.setPatience(0)
    defer { open.database.setPatience(Self.patience) }
    do throws(FlowError) {
      try write(commands, in: open)
      return true
    } catch {
      // Another failure is reported by the next `write`.
      if error.storeProblem != .busy { failure = error }
      return false
    }
  }

  private func write(
    _ commands: [RunCommand], in connection: Connection
  ) throws(FlowError) {
    try connection.database.transaction { () throws(FlowError) in
      try checkLease(connection)
      for command in commands { try write(command, connection) }
      if let mirror {
        try MirrorTable.note(target.number, mirror.position, in: connection.database)
      }
    }
  }

  /// Closes the connection.
  func close() {
    open = nil
    mirror?.close()
  }

  /// Opens what takes a while, before there is something to write.
  func begin() {
    // The first write has the same failure, and reports it.
    mirror?.beat()
  }

  /// How often `beat` has to be called, in seconds.
  var interval: Double { mirror == nil ? RunLease.interval : MirrorSession.interval }

  /// Gives a sign of life.
  func beat() {
    guard failure == nil else { return }
    mirror?.beat()
    let now = WallClock.now()
    guard let open, mirror == nil || abs(now - lastBeat) >= RunLease.interval else { return }
    lastBeat = now
    do throws(FlowError) {
      try open.database.transaction { () throws(FlowError) in
        try checkLease(open)
        open.beat.bind(1, target.number)
        open.beat.bind(2, now)
        try open.beat.run()
      }
    } catch {
      // The next write has the same failure, and reports it.
    }
  }

  private func connect() throws(FlowError) -> Connection {
    if let open { return open }
    let database = try JournalStore.openToWrite(target.folder, Self.patience)
    let digests = try DigestMaker(key: target.key)
    let made = Connection(
      database: database, digests: digests, table: try RecordTable(database, digests),
      files: FileTable(database, digests), codes: CodeTable(database, digests),
      lease: try database.prepare("SELECT \(RunLease.columns) FROM runs WHERE number = ?1"),
      end: try database.prepare(
        "UPDATE runs SET is_held = ?4, is_finished = ?2, ended = ?3 WHERE number = ?1"),
      beat: try database.prepare("UPDATE runs SET beat = ?2 WHERE number = ?1"))
    open = made
    return made
  }

  /// Replaces large values by files, which are on the disk before any record names them.
  private func storeValues(
    of commands: [RunCommand], _ digests: DigestMaker
  ) throws(FlowError) -> [RunCommand] {
    var prepared = commands
    var hasFiles = false
    for index in prepared.indices {
      guard case .record(var record) = prepared[index], record.hasLargeValue else { continue }
      try ValueFiles.store(&record, of: target.run, in: target.folder, with: digests)
      prepared[index] = .record(record)
      hasFiles = true
    }
    if hasFiles { try ValueFiles.synchronize(target.run, in: target.folder) }
    return prepared
  }

  private func write(_ command: RunCommand, _ connection: Connection) throws(FlowError) {
    switch command {
    case .record(let record): try connection.table.write(record)
    case .file(let file): try connection.files.write(file, at: WallClock.now())
    case .code(let code): try connection.codes.write(code, of: target.number)
    case .end(let how):
      // The server has the end already.
      let isEnding = how == .finished && mirror == nil
      let end: RunRow.End =
        switch how {
        case .finished: isEnding ? .finishing : .finished
        case .failed: .failed
        case .stopped: .none
        }
      connection.end.bind(1, target.number)
      connection.end.bind(2, end.rawValue)
      connection.end.bind(3, WallClock.now())
      connection.end.bind(4, isEnding ? 1 : 0 as Int64)
      try connection.end.run()
    }
  }

  /// Refuses to write when the run isn't this process's any more. Within a transaction: no other process
  /// can take it until its end.
  private func checkLease(_ connection: Connection) throws(FlowError) {
    connection.lease.bind(1, target.number)
    guard let lease = try connection.lease.first({ RunLease($0, from: 0) }) else {
      throw StoreProblem.fenced.error(
        "run \(target.run) was removed from the store '\(target.folder)' while it was executed")
    }
    if lease.epoch == target.epoch { return }
    throw StoreProblem.fenced.error(
      "run \(target.run) was continued by process \(lease.holder.pid) on \(lease.holder.host), "
        + "so this process can't keep anything more")
  }
}

extension RunCommand {
  /// Whether a value has to go into a file.
  var hasLargeValue: Bool {
    if case .record(let record) = self { record.hasLargeValue } else { false }
  }
}

extension OpRecord {
  /// Whether a value has to go into a file.
  var hasLargeValue: Bool {
    writes.contains {
      if case .bytes(let value) = $0.content { value.count > ValueFiles.limit } else { false }
    }
  }
}
