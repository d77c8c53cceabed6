package import FlowEngine
internal import FlowSystem

/// Beginning and continuing runs, and lists of them.
extension JournalStore {
  /// Begins a run that this process executes.
  ///
  /// - Parameters:
  ///   - script: The path of the script, which `resume` finds the run by.
  ///   - words: The arguments of the script.
  ///   - loop: The loop on which the run's records are written and callbacks run.
  /// - Returns: The run, without records.
  /// - Throws: A `FlowError` when the store can't be written.
  package func begin(
    script: ByteString, words: [ByteString], on loop: FlowEventLoop
  ) throws(FlowError) -> KeptRun {
    try begin(script: script, words: words, on: loop) { _, _ in nil }
  }

  /// Begins a run; `claim` is called before it is in the store, with its id and what it begins with. The id has at least
  /// so many letters and digits after the first one.
  func begin(
    script: ByteString, words: [ByteString], on loop: FlowEventLoop, nameLength: Int = 3,
    claim: (ByteString, MirrorMessage.Head) throws(FlowError) -> MirrorTarget?
  ) throws(FlowError) -> KeptRun {
    try checkWritable()
    let seed = Int64.random(in: .min ... .max)
    let (number, name, mirror) = try database.transaction { () throws(FlowError) in
      let number = try nextNumber()
      let name = try newName(nameLength)
      let head = MirrorMessage.Head(words: words, seed: seed, began: WallClock.now())
      try insert(number, name, script, head)
      try RunLease.take(number, 1, in: database)
      let mirror = try claim(name, head)
      if let mirror { try MirrorTable.note(number, (mirror.first, mirror.last), in: database) }
      return (number, name, mirror)
    }
    return KeptRun(
      id: name, number: number, epoch: 1, seed: UInt64(bitPattern: seed), records: [],
      mirror: mirror, of: self, on: loop)
  }

  /// Adds the row of a run that no process executes.
  func insert(
    _ number: Int64, _ name: ByteString, _ script: ByteString, _ head: MirrorMessage.Head
  ) throws(FlowError) {
    try database.prepare(
      "INSERT INTO runs(\(RunRow.columns)) "
        + "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, 0, 0, 0, x'', x'', 0, 0)", number, name, script,
      ByteString(head.words.formBytes), head.seed, head.began,
      try RunRow.sum(number, name, script, head.words, head.seed, head.began, digests)
    ).run()
  }

  /// Continues a run, which no other process may execute then.
  ///
  /// - Parameters:
  ///   - id: The id of the run; nil for the last one of the script that isn't finished.
  ///   - script: The path of the script. A run that `id` names may be of one that doesn't exist any more: it belongs
  ///     to this one from now on.
  ///   - loop: The loop on which the run's records are written and callbacks run.
  /// - Returns: The run with its records; nil when the script has no unfinished run.
  /// - Throws: A `FlowError`; its `storeProblem` is `held` when a process is executing the run, and `missing`
  ///   when the script has no run of that id; `damaged` when a record isn't what was written.
  package func resume(
    _ id: ByteString?, script: ByteString, on loop: FlowEventLoop
  ) throws(FlowError) -> KeptRun? {
    try resume(id, script: script, on: loop) { _ in nil }
  }

  /// Continues a run; `claim` is called before this process is noted in the store.
  func resume(
    _ id: ByteString?, script: ByteString, on loop: FlowEventLoop,
    claim: (RunRow) throws(FlowError) -> MirrorTarget?
  ) throws(FlowError) -> KeptRun? {
    try checkWritable()
    typealias Found = (RunRow, [OpRecord], MirrorTarget?)
    let found = try database.transaction { () throws(FlowError) -> Found? in
      guard let run = try find(id, of: script) else { return nil }
      try checkSound(run)
      if run.script != script, exists(run.script) {
        throw StoreProblem.missing.error(
          "run \(run.name) is of '\(run.script)', not of '\(script)'")
      }
      if run.lease.isLive { throw held(run) }
      // Before the run is taken: one that can't be read is left as it is.
      let records = try records(of: run)
      if run.script != script { try rename(run, to: script) }
      let mirror = try claim(run)
      if let mirror {
        try MirrorTable.note(run.number, (mirror.first, mirror.last), in: database)
      } else {
        try MirrorTable.remove(run.number, in: database)
      }
      try RunLease.take(run.number, run.lease.epoch &+ 1, in: database)
      return (run, records, mirror)
    }
    guard let (run, records, mirror) = found else { return nil }
    let kept = KeptRun(
      id: run.name, number: run.number, epoch: run.lease.epoch &+ 1,
      seed: UInt64(bitPattern: run.seed), records: records, mirror: mirror, of: self, on: loop)
    kept.earlierEnd = run.isFinished ? .finished : run.end == .failed ? .failed : .stopped
    return kept
  }

  /// Whether there is a script; a path that isn't from the root is from the folder around the store.
  private func exists(_ script: ByteString) -> Bool {
    let path = script.bytes.first == UInt8(ascii: "/") ? script : folder + "/../" + script
    return path.withCString { access($0, F_OK) } == .some(0)
  }

  /// Gives a run to a script that was renamed.
  private func rename(_ run: RunRow, to script: ByteString) throws(FlowError) {
    try database.prepare(
      "UPDATE runs SET script = ?2, sum = ?3 WHERE number = ?1", run.number, script,
      try RunRow.sum(run.number, run.name, script, run.words, run.seed, run.began, digests)
    ).run()
  }

  private func find(_ id: ByteString?, of script: ByteString) throws(FlowError) -> RunRow? {
    guard let id else { return try lastUnfinished(script) }
    return try row(of: id)
  }

  /// The id of the last run of a script that isn't finished; nil without one.
  package func unfinishedRun(of script: ByteString) throws(FlowError) -> ByteString? {
    try lastUnfinished(script)?.name
  }

  /// The id of the last run of a script, finished or not; nil without one.
  package func lastRun(of script: ByteString) throws(FlowError) -> ByteString? {
    try last(script, "")?.name
  }

  /// All runs, the oldest first.
  package func runs() throws(FlowError) -> [KeptRunSummary] {
    var summaries: [KeptRunSummary] = []
    for run in try rows() { summaries.append(try summary(of: run)) }
    return summaries
  }

  /// A run.
  ///
  /// - Throws: A `FlowError` when there is none of this id.
  package func run(_ id: ByteString) throws(FlowError) -> KeptRunSummary {
    try summary(of: row(of: id))
  }

  /// The records of a run, the oldest first, also while a process executes it.
  ///
  /// - Throws: A `FlowError` when there is no run of this id, or a record isn't what was written.
  package func records(of id: ByteString) throws(FlowError) -> [OpRecord] {
    try records(of: row(of: id))
  }

  /// The last finished record of a `cacheKey`, in any run, and the id of its run. A large value of it may be gone
  /// when it is loaded: another process may remove the run.
  ///
  /// - Returns: The record; nil when there is none, or it isn't what was written.
  package func cached(
    _ key: Digest
  ) throws(FlowError) -> (run: ByteString, record: OpRecord)? {
    guard let record = try table.cached(key) else { return nil }
    let select = try database.prepare(
      "SELECT name FROM runs WHERE number = ?1", RecordTable.run(of: record.id))
    guard let run = try select.first({ $0.text(0) }) else { return nil }
    return (run, record)
  }

  private func records(of run: RunRow) throws(FlowError) -> [OpRecord] {
    var records: [OpRecord] = []
    records.reserveCapacity(try table.mostRecords(of: run.number))
    try table.read(run: run.number) { id, record throws(FlowError) in
      guard let record else {
        let number = id - RecordTable.numbers(of: run.number).lowerBound
        throw StoreProblem.damaged.error(
          "record \(number) of run \(run.name) in the store '\(folder)' isn't what was written")
      }
      records.append(record)
    }
    return records
  }

  private func summary(of run: RunRow) throws(FlowError) -> KeptRunSummary {
    var summary = run.summary
    let numbers = RecordTable.numbers(of: run.number)
    let count = try database.prepare(
      "SELECT state, count(*) FROM records WHERE id >= ?1 AND id < ?2 GROUP BY state",
      numbers.lowerBound, numbers.upperBound)
    while try count.step() {
      let number = Int(count.integer(1))
      switch OpRecord.State(rawValue: count.integer(0)) {
      case .started: summary.started = number
      case .finished: summary.finished = number
      case .failed: summary.failed = number
      case .undone: summary.undone = number
      case .stopped: summary.stopped = number
      case nil: break
      }
    }
    return summary
  }

  /// All rows of runs, the oldest first.
  func rows() throws(FlowError) -> [RunRow] {
    let select = try database.prepare("SELECT \(RunRow.columns) FROM runs ORDER BY number")
    var rows: [RunRow] = []
    while try select.step() { rows.append(RunRow(select, digests)) }
    return rows
  }

  func row(of id: ByteString) throws(FlowError) -> RunRow {
    let select = try database.prepare("SELECT \(RunRow.columns) FROM runs WHERE name = ?1", id)
    guard let row = try select.first({ RunRow($0, digests) }) else {
      throw StoreProblem.missing.error("there is no run '\(id)' in the store '\(folder)'")
    }
    return row
  }

  private func lastUnfinished(_ script: ByteString) throws(FlowError) -> RunRow? {
    // One that was about to finish may count as either.
    try last(script, "AND is_finished <> 1") { !$0.isFinished }
  }

  private func last(
    _ script: ByteString, _ condition: ByteString, where isWanted: (RunRow) -> Bool = { _ in true }
  ) throws(FlowError) -> RunRow? {
    let select = try database.prepare(
      "SELECT \(RunRow.columns) FROM runs WHERE script = ?1 \(condition) ORDER BY number DESC"
    )
    defer { select.reset() }
    select.bind(1, script)
    while try select.step() {
      let row = RunRow(select, digests)
      if isWanted(row) { return row }
    }
    return nil
  }

  /// Records that the process of a run that was about to finish ends next. Doesn't wait for the disk, as a process
  /// that is killed meanwhile would have finished the run without a success: nothing is lost but this when the machine
  /// stops, see `RunRow.isFinished`.
  func finish(_ number: Int64, _ epoch: Int64) throws(FlowError) {
    try database.execute("PRAGMA synchronous = NORMAL")
    try database.prepare(
      "UPDATE runs SET is_held = 0, is_finished = 1 WHERE number = ?1 AND epoch = ?2", number, epoch
    ).run()
    try database.execute("PRAGMA synchronous = FULL")
  }

  func nextNumber() throws(FlowError) -> Int64 {
    // AUTOINCREMENT never gives a number twice, so no record of a removed run can belong to a later one.
    let last = try database.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'runs'")
      .first { $0.integer(0) }
    let present = max(last ?? 0, 0)
    if present < RecordTable.lastRun { return present + 1 }
    throw StoreProblem.unsuitable.error(
      "the store '\(folder)' has had \(RecordTable.lastRun) runs: remove its folder")
  }

  /// A short name that no run has: `r` with letters and digits that are hard to confuse.
  private func newName(_ shortest: Int) throws(FlowError) -> ByteString {
    let letters = "23456789abcdefghjkmnpqrstvwxyz".bytes
    let select = try database.prepare("SELECT 1 FROM runs WHERE name = ?1")
    var length = shortest
    while true {
      for _ in 0..<8 {
        let tail = (0..<length).map { _ in letters[Int.random(in: letters.indices)] }
        let name = ByteString([UInt8(ascii: "r")] + tail)
        select.bind(1, name)
        if try select.first({ _ in true }) == nil { return name }
      }
      length += 1
    }
  }

  func checkWritable() throws(FlowError) {
    if isReadOnly {
      throw StoreProblem.notAllowed.error("the store '\(folder)' was opened only to read")
    }
  }

  private func checkSound(_ run: RunRow) throws(FlowError) {
    if run.isSound { return }
    throw StoreProblem.damaged.error(
      "run \(run.name) in the store '\(folder)' isn't what was written")
  }

  func held(_ run: RunRow) -> FlowError {
    let holder = run.lease.holder
    let place =
      holder.host == ProcessIdentity.current.host ? "" : " on \(holder.host)" as ByteString
    return StoreProblem.held.error(
      "run \(run.name) is being executed by process \(holder.pid)\(place)")
  }
}
