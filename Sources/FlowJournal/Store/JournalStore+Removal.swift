package import FlowEngine

/// Removing runs.
extension JournalStore {
  /// How large a store may become, in bytes.
  package static let usualLimit: Int64 = 2 << 30

  /// How many finished runs `prune` keeps, however old they are.
  static let keptRuns = 20
  /// How long `prune` keeps every run, in seconds.
  static let keptTime = 30.0 * 86_400

  /// Removes a run.
  ///
  /// - Throws: A `FlowError` when there is none of this id, or a process is executing it.
  package func forget(_ id: ByteString) throws(FlowError) {
    try checkWritable()
    try remove(row(of: id), isRequired: true)
    try shrink()
  }

  /// Removes all runs that changed last more than this many seconds ago, apart from those that a process is
  /// executing.
  ///
  /// - Returns: The ids of the removed runs.
  package func forget(olderThan seconds: Double) throws(FlowError) -> [ByteString] {
    try checkWritable()
    let now = WallClock.now()
    return try removeAll { now - $0.changed > seconds }
  }

  /// Keeps the store small: a finished run is kept while it is one of the last 20 or changed within 30
  /// days, another run for 30 days. When the store is still larger than the limit, the oldest runs go, first
  /// those that are finished. Files that a crash has left go, too.
  ///
  /// - Parameters:
  ///   - limit: The size of the store, in bytes.
  ///   - id: A run that isn't removed in any case.
  /// - Returns: The ids of the removed runs.
  /// - Throws: A `FlowError` when the store can't be written.
  package func prune(
    limit: Int64 = usualLimit, sparing id: ByteString? = nil
  ) throws(FlowError) -> [ByteString] {
    try checkWritable()
    let now = WallClock.now()
    let last = Set(try rows().filter { $0.end != .none }.suffix(Self.keptRuns).map(\.number))
    var removed = try removeAll {
      now - $0.changed > Self.keptTime && $0.name != id
        && !($0.isFinished && last.contains($0.number))
    }
    try removeLeftFiles()
    try files.prune(at: now)
    guard try size() > limit else { return removed }
    let rest = try rows().filter { $0.name != id }
    for run in rest.filter(\.isFinished) + rest.filter({ !$0.isFinished }) {
      if try remove(run, isRequired: false) { removed.append(run.name) }
      if try size() <= limit { break }
    }
    try shrink()
    return removed
  }

  /// Moves what is still in the log of changes into the database, so that somebody who may only read the store finds
  /// it there. Another process that is writing may prevent that.
  package func emptyLog() throws(FlowError) {
    try checkWritable()
    try database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
  }

  /// The size of the store, in bytes.
  package func size() throws(FlowError) -> Int64 {
    let pages = try number("PRAGMA page_count") - number("PRAGMA freelist_count")
    var size = try pages * number("PRAGMA page_size")
    for entry in try ValueFiles.list(in: folder, isRecursive: true) where entry.kind == .file {
      let name = ByteString(Array(entry.path.bytes.dropFirst(folder.count + 1)))
      size += try Self.fileSize(name, in: folder)
    }
    return size
  }

  private func number(_ pragma: ByteString) throws(FlowError) -> Int64 {
    try database.prepare(pragma).first { $0.integer(0) } ?? 0
  }

  private func removeAll(
    where isOld: (RunRow) -> Bool
  ) throws(FlowError) -> [ByteString] {
    var removed: [ByteString] = []
    for run in try rows() where isOld(run) {
      if try remove(run, isRequired: false) { removed.append(run.name) }
    }
    if !removed.isEmpty { try shrink() }
    return removed
  }

  /// Removes a run unless a process is executing it, which is an error if it is required.
  @discardableResult
  private func remove(_ run: RunRow, isRequired: Bool) throws(FlowError) -> Bool {
    let isRemoved = try database.transaction { () throws(FlowError) in
      // Another process may have taken it since it was read.
      let present = try row(of: run.name)
      if present.lease.isLive {
        if isRequired { throw held(present) }
        return false
      }
      let numbers = RecordTable.numbers(of: run.number)
      let records = try database.prepare("DELETE FROM records WHERE id >= ?1 AND id < ?2")
      records.bind(1, numbers.lowerBound)
      records.bind(2, numbers.upperBound)
      try records.run()
      let row = try database.prepare("DELETE FROM runs WHERE number = ?1")
      row.bind(1, run.number)
      try row.run()
      try codes.remove(run.number)
      try MirrorTable.remove(run.number, in: database)
      return true
    }
    // Files that nothing names any more are found by `removeLeftFiles` when a crash comes here.
    if isRemoved { try ValueFiles.remove(run.name, in: folder) }
    return isRemoved
  }

  /// Removes the files of runs that aren't there any more.
  private func removeLeftFiles() throws(FlowError) {
    // In this order: a run is in the database before it has files.
    let folders = try ValueFiles.list(in: folder, isRecursive: false)
    let names = Set(try rows().map(\.name))
    for entry in folders {
      guard let name = entry.path.bytes.split(separator: UInt8(ascii: "/")).last else { continue }
      if !names.contains(ByteString(Array(name))) {
        try ValueFiles.remove(ByteString(Array(name)), in: folder)
      }
    }
  }

  /// Returns unused pages to the file system, as far as no other process is in the way.
  private func shrink() throws(FlowError) {
    try database.execute("PRAGMA incremental_vacuum")
    try database.execute("PRAGMA wal_checkpoint(PASSIVE)")
  }
}
