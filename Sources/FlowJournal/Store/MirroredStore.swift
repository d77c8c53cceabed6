internal import FlowSystem
package import FlowEngine

/// The store of a script's runs that a server keeps as well: a working copy, which gets from the server what it lacks.
///
/// The server is ahead of the copy: a message is published before it is in the store. All machines digest with the key
/// of the server, so that they find the same values equal; a store of its own for each such key has the copies.
package final class MirroredStore {
  /// The working copy.
  package let store: JournalStore
  private let mirror: RunMirror
  private let connection: any MirrorConnection

  /// A run as its last message on the server shows it.
  private struct Entry {
    let run: MirroredRun
    let last: UInt64
    let message: MirrorMessage
    /// The number of the run's first message.
    var first: UInt64 { message.first == 0 ? last : message.first }
  }

  /// Connects to the server, and opens the working copy within a folder.
  package init(_ mirror: RunMirror, in folder: ByteString) throws(FlowError) {
    self.mirror = mirror
    connection = try mirror.connect()
    do throws(FlowError) {
      let key = try connection.hashKey(orElse: StoreKey.make())
      guard key.count == StoreKey.size else {
        throw FlowError(
          .error, "\(connection.place): the key of the kept runs isn't one of flowlua")
      }
      try StoreKey.makeFolder(folder)
      let name = try DigestMaker(key: key).digest(of: "flowlua store".bytes)
      let digits = ByteString(String(name.high, radix: 16))
      let copy: ByteString = "\(folder)/nats-\(digits)"
      store = try JournalStore(folder: copy, isReadOnly: false, newKey: key)
      guard store.key == key else {
        throw StoreProblem.damaged.error(
          "the store '\(copy)' has another key than the server \(connection.place)")
      }
      try MirrorTable.make(in: store.database)
    } catch {
      connection.close()
      throw error
    }
  }

  /// Ends the connection to the server; the store stays open.
  package func close() { connection.close() }

  // MARK: Beginning and continuing

  /// Begins a run that this process executes.
  package func begin(words: [ByteString], on loop: FlowEventLoop) throws(FlowError) -> KeptRun {
    // Other computers may have begun runs that this store doesn't know.
    try store.begin(script: mirror.script, words: words, on: loop, nameLength: 6) {
      id, head throws(FlowError) in
      let run = MirroredRun(script: mirror.script, id: id)
      let message = MirrorMessage(.held, epoch: 1, first: 0, head: head)
      switch try connection.publish(message.bytes, of: run, after: 0, isLast: { true }) {
      case .stored(let sequence):
        return MirrorTarget(mirror: mirror, first: sequence, last: sequence)
      case .outdated:
        throw StoreProblem.held.error("another computer has begun a run \(id) as well: try again")
      }
    }
  }

  /// Continues a run, which no other process may execute then.
  ///
  /// - Parameters:
  ///   - id: The id of the run; nil for the last one of the script that isn't finished.
  ///   - loop: The loop on which the run's records are written and callbacks run.
  /// - Returns: The run with its records; nil when the script has no unfinished run.
  /// - Throws: A `FlowError`; its `storeProblem` is `held` when a process is executing the run, and `missing`
  ///   when the script has no run of that id; `damaged` when a record isn't what was written.
  package func resume(_ id: ByteString?, on loop: FlowEventLoop) throws(FlowError) -> KeptRun? {
    let found = if let id { try entry(id) } else { try lastUnfinished() }
    guard let entry = found else { return nil }
    try refuseIfExecuted(entry)
    try fetch(entry, isLive: false)
    return try store.resume(entry.run.id, script: mirror.script, on: loop) {
      _ throws(FlowError) in
      let message = MirrorMessage(.held, epoch: entry.message.epoch &+ 1, first: entry.first)
      let reply = try connection.publish(
        message.bytes, of: entry.run, after: entry.last, isLast: { true })
      switch reply {
      case .stored(let sequence):
        return MirrorTarget(mirror: mirror, first: entry.first, last: sequence)
      case .outdated(let other):
        let holder = other?.bytes.flatMap { MirrorMessage($0) }?.holder
        throw held(entry.run.id, holder ?? entry.message.holder)
      }
    }
  }

  private func held(_ id: ByteString, _ holder: ProcessIdentity) -> FlowError {
    StoreProblem.held.error(
      "run \(id) is being executed by process \(holder.pid) on \(holder.host)")
  }

  /// Throws if a process executes a run. One that isn't heard for some seconds doesn't, as far as can be known; if it
  /// comes back, it can't write anything more.
  private func refuseIfExecuted(_ entry: Entry) throws(FlowError) {
    if try isExecuted([entry]).isEmpty { return }
    throw held(entry.run.id, entry.message.holder)
  }

  /// Those runs that a process executes.
  private func isExecuted(_ entries: [Entry]) throws(FlowError) -> Set<MirroredRun> {
    // Machines may have the same name, so only a process since this machine's start is known to have ended.
    let boot = ProcessIdentity.current.boot
    let held = entries.filter {
      let holder = $0.message.holder
      return $0.message.state == .held && !(holder.boot == boot && holder.life == .ended)
    }
    return held.isEmpty ? [] : try connection.living(held.map(\.run))
  }

  // MARK: Runs on the server

  private func entry(_ id: ByteString) throws(FlowError) -> Entry {
    let run = MirroredRun(script: mirror.script, id: id)
    if let entry = try entry(of: run) { return entry }
    throw StoreProblem.missing.error(
      "there is no run '\(id)' of '\(mirror.script)' on the server \(connection.place)")
  }

  private func entry(of run: MirroredRun) throws(FlowError) -> Entry? {
    guard let last = try connection.last(of: run) else { return nil }
    return Entry(run: run, last: last.sequence, message: try read(last, of: run))
  }

  private func read(
    _ message: MirroredBytes, of run: MirroredRun
  ) throws(FlowError) -> MirrorMessage {
    if let read = message.bytes.flatMap({ MirrorMessage($0) }) { return read }
    throw StoreProblem.damaged.error(
      "run \(run.id) on the server \(connection.place) can't be read: message \(message.sequence) "
        + "is damaged, or of a later version of flowlua")
  }

  /// The runs of a script, or of all for nil, the oldest first. Names that no run can have are left out, and if
  /// wanted runs that can't be read.
  private func entries(
    of script: ByteString?, onlyReadable: Bool = false
  ) throws(FlowError) -> [Entry] {
    var entries: [Entry] = []
    for (run, last) in try connection.runs(of: script) where ValueFiles.isRun(run.id) {
      if onlyReadable, last.bytes.flatMap({ MirrorMessage($0) }) == nil { continue }
      entries.append(Entry(run: run, last: last.sequence, message: try read(last, of: run)))
    }
    return entries.sorted { $0.first < $1.first }
  }

  private func lastUnfinished() throws(FlowError) -> Entry? {
    try entries(of: mirror.script).last { $0.message.state != .finished }
  }

  /// Whether the server has runs of the script that this process can't read, as they are sealed with another key.
  package func hasUnreadableRuns() throws(FlowError) -> Bool {
    try connection.hasUnreadableRuns(of: mirror.script)
  }

  // MARK: Fetching

  /// Brings the last run of the script that isn't finished into the working copy, or the one with an id. Returns its id.
  package func fetch(_ id: ByteString?, orLast isAny: Bool = false) throws(FlowError) -> ByteString?
  {
    let found: Entry?
    if let id {
      found = try entry(id)
    } else {
      found = isAny ? try entries(of: mirror.script).last : try lastUnfinished()
    }
    guard let found else { return nil }
    try fetch(found, isLive: found.message.state == .held)
    return found.run.id
  }

  /// Brings all runs of the script into the working copy, or those of all scripts, and removes from there what the
  /// server has no more.
  package func fetchAll(ofAllScripts isAll: Bool) throws(FlowError) {
    let entries = try entries(of: isAll ? nil : mirror.script, onlyReadable: true)
    let executed = try isExecuted(entries)
    for entry in entries { try fetch(entry, isLive: executed.contains(entry.run)) }
    let present = Set(entries.map(\.run.id))
    for row in try store.rows() where isAll || row.script == mirror.script {
      if !present.contains(row.name) { try store.forget(row.name) }
    }
  }

  /// Brings a run into the working copy.
  private func fetch(_ entry: Entry, isLive: Bool) throws(FlowError) {
    let database = store.database
    var row = try store.rows().first { $0.name == entry.run.id }
    var known: UInt64 = 0
    if let present = row {
      guard let position = try MirrorTable.position(of: present.number, in: database),
        present.script == entry.run.script
      else {
        throw StoreProblem.unsuitable.error(
          "run \(entry.run.id) in the store '\(store.folder)' isn't the run of the server \(connection.place)"
        )
      }
      let isOfThisStore = !position.isFetched && present.lease.epoch == entry.message.epoch
      // A process of this store is about to write; it may stand still.
      if isOfThisStore, present.lease.isLive { return }
      known = position.last
    }
    if known > entry.last {
      throw StoreProblem.damaged.error(
        "the server \(connection.place) has lost messages of run \(entry.run.id): the store "
          + "'\(store.folder)' has more, so continue with that, without the server (--store)")
    }
    // Before the transaction, for which others may wait.
    let messages = try messages(of: entry, after: known)
    try database.transaction { () throws(FlowError) in
      // Another process of this store may have continued the run meanwhile.
      let present = try store.rows().first { $0.name == entry.run.id }
      guard present?.lease.epoch == row?.lease.epoch else { return }
      var hasFiles = false
      for message in messages {
        if row == nil { row = try insert(entry, message) }
        guard let number = row?.number else { return }
        for var record in message.records {
          let (id, isTooLarge) = record.id.addingReportingOverflow(
            RecordTable.numbers(of: number).lowerBound)
          guard !isTooLarge, RecordTable.numbers(of: number).contains(id) else {
            throw StoreProblem.damaged.error(
              "a record of run \(entry.run.id) on the server \(connection.place) has a wrong number"
            )
          }
          record.id = id
          if record.hasLargeValue {
            try ValueFiles.store(&record, of: entry.run.id, in: store.folder, with: store.digests)
            hasFiles = true
          }
          try store.table.write(record)
        }
        for code in message.codes { try store.codes.write(code, of: number) }
      }
      guard let number = row?.number else { return }
      if hasFiles { try ValueFiles.synchronize(entry.run.id, in: store.folder) }
      try note(entry, number, isLive: isLive)
      try MirrorTable.note(number, (entry.first, entry.last), isFetched: true, in: database)
    }
  }

  /// The messages of a run after a number.
  private func messages(
    of entry: Entry, after known: UInt64
  ) throws(FlowError) -> [MirrorMessage] {
    guard known < entry.last else { return [] }
    var messages: [MirrorMessage] = []
    var last = known
    try connection.read(entry.run, after: known, upTo: entry.last) { bytes throws(FlowError) in
      messages.append(try read(bytes, of: entry.run))
      last = bytes.sequence
    }
    guard last == entry.last else {
      throw StoreProblem.other.error(
        "the server \(connection.place) hasn't sent all of run \(entry.run.id): try again")
    }
    return messages
  }

  /// The runs of the script in the working copy, or those of all scripts, the oldest first.
  package func runs(ofAllScripts isAll: Bool) throws(FlowError) -> [KeptRunSummary] {
    try store.runs().filter { isAll || $0.script == mirror.script }
  }

  /// Adds the row of a run that begins with this message.
  private func insert(_ entry: Entry, _ message: MirrorMessage) throws(FlowError) -> RunRow? {
    guard let head = message.head else {
      throw StoreProblem.damaged.error(
        "the server \(connection.place) has lost the begin of run \(entry.run.id)")
    }
    try store.insert(try store.nextNumber(), entry.run.id, entry.run.script, head)
    return try store.row(of: entry.run.id)
  }

  /// Notes who executes a run, as its last message says.
  private func note(_ entry: Entry, _ number: Int64, isLive: Bool) throws(FlowError) {
    let message = entry.message
    try store.database.prepare(
      """
      UPDATE runs SET is_finished = ?2, ended = ?3, epoch = ?4, is_held = ?5, pid = ?6, host = ?7,
        boot = ?8, start = ?9, beat = ?10 WHERE number = ?1
      """, number, message.state == .finished ? 1 : 0 as Int64,
      message.state == .held ? 0 : message.time, message.epoch, isLive ? 1 : 0 as Int64,
      message.holder.pid, message.holder.host, message.holder.boot, message.holder.start,
      isLive ? WallClock.now() : message.time
    ).run()
  }

  // MARK: Removing

  /// Removes a run from the server and from the working copy.
  package func forget(_ id: ByteString) throws(FlowError) {
    let entry = try entry(id)
    try refuseIfExecuted(entry)
    try forget(entry)
  }

  private func forget(_ entry: Entry) throws(FlowError) {
    if let row = try store.rows().first(where: { $0.name == entry.run.id }) {
      try store.forget(row.name)
    }
    try connection.remove(entry.run)
  }

  /// Removes all runs of the script that changed last more than these seconds ago, apart from those that a process
  /// executes.
  ///
  /// - Returns: The ids of the removed runs.
  package func forget(olderThan seconds: Double) throws(FlowError) -> [ByteString] {
    let now = WallClock.now()
    return try removeAll(
      try entries(of: mirror.script, onlyReadable: true).filter { now - $0.message.time > seconds })
  }

  /// Removes the finished runs of the script that are old and not among the last ones. Others stay, however old they are:
  /// the clock of one machine must not take a run from all.
  package func prune(sparing id: ByteString) throws(FlowError) {
    let finished = try entries(of: mirror.script, onlyReadable: true).filter {
      $0.message.state == .finished
    }
    let now = WallClock.now()
    _ = try removeAll(
      finished.dropLast(JournalStore.keptRuns).filter {
        now - $0.message.time > JournalStore.keptTime && $0.run.id != id
      })
  }

  private func removeAll(_ entries: [Entry]) throws(FlowError) -> [ByteString] {
    let executed = try isExecuted(entries)
    var removed: [ByteString] = []
    for entry in entries where !executed.contains(entry.run) {
      try forget(entry)
      removed.append(entry.run.id)
    }
    return removed
  }
}
