package import FlowEngine
internal import FlowSystem

/// A folder that keeps runs: what their ops did, over all processes that execute them.
///
/// The folder has the database `store.sqlite`, the file `key`, and in `values` the values of more than
/// 64 KiB, a folder for each run. A store is confined to the thread that makes it, and its calls block for as
/// long as the disk needs.
package final class JournalStore {
  /// The path of the folder.
  package let folder: ByteString
  /// Whether nothing can be written.
  package let isReadOnly: Bool
  let database: StoreDatabase
  let key: [UInt8]
  let table: RecordTable
  let files: FileTable
  let codes: CodeTable
  let messages: MessageTable
  let digests: DigestMaker

  /// How long a call waits for another process that writes, in milliseconds.
  static let patience: Int32 = 5000

  /// Opens the store of a folder. One that writes makes what doesn't exist: the folder, for this user only,
  /// the database and the key.
  ///
  /// - Parameters:
  ///   - folder: The path.
  ///   - isReadOnly: Whether only to read; the store must exist then.
  ///   - waits: Whether calls wait for another process that writes, for some seconds.
  /// - Throws: A `FlowError` with a `storeProblem`: there is no such store or no access to it, it is on a
  ///   network file system, damaged, or of a later version.
  package convenience init(
    folder: ByteString, isReadOnly: Bool, waits: Bool = true
  ) throws(FlowError) {
    try self.init(
      folder: folder, isReadOnly: isReadOnly, newKey: nil, patience: waits ? Self.patience : 0)
  }

  /// Opens a store as the initializer above; a new one that writes gets the key `newKey`, unless that is nil.
  init(
    folder: ByteString, isReadOnly: Bool, newKey: [UInt8]?, patience: Int32 = JournalStore.patience
  ) throws(FlowError) {
    self.folder = folder
    self.isReadOnly = isReadOnly
    if isReadOnly {
      try Self.checkExists(folder)
    } else {
      try StoreKey.makeFolder(folder)
      try Self.checkAccess(folder)
    }
    try StoreKey.checkFileSystem(of: folder)
    // Without its key no record would be what was written.
    let isNew = isReadOnly ? false : try Self.fileSize("store.sqlite", in: folder) == 0
    key = try StoreKey.open(in: folder, makes: isNew, given: newKey)
    digests = try DigestMaker(key: key)
    if isNew { try StoreKey.makeDatabase(in: folder) }
    database = try isReadOnly ? Self.openToRead(folder) : Self.openToWrite(folder, patience)
    table = try RecordTable(database, digests)
    files = FileTable(database, digests)
    codes = CodeTable(database, digests)
    messages = MessageTable(database, digests)
  }

  /// Opens the database for writing.
  static func openToWrite(
    _ folder: ByteString, _ patience: Int32
  ) throws(FlowError) -> StoreDatabase {
    let database = try StoreDatabase(folder: folder, mode: .readWrite, patience: patience)
    try StoreSchema.prepare(database)
    return database
  }

  private static func openToRead(_ folder: ByteString) throws(FlowError) -> StoreDatabase {
    do throws(FlowError) {
      return try openChecked(folder, .readOnly)
    } catch {
      let mayWrite = folder.withCString { access($0, W_OK) } == .some(0)
      if mayWrite, error.storeProblem == .notAllowed {
        // A process was killed while it made the store: what it hadn't finished has to be taken back first.
        try StoreDatabase(folder: folder, mode: .readWrite, patience: patience).recover()
        return try openChecked(folder, .readOnly)
      }
      // Even reading needs a file for locks, which can't be made there. Nobody else can write either,
      // so none is needed, unless a part of the content is still in the log of changes.
      guard !mayWrite, try fileSize("store.sqlite-wal", in: folder) == 0 else { throw error }
      return try openChecked(folder, .immutable)
    }
  }

  private static func openChecked(
    _ folder: ByteString, _ mode: StoreDatabase.Mode
  ) throws(FlowError) -> StoreDatabase {
    let database = try StoreDatabase(folder: folder, mode: mode, patience: patience)
    try StoreSchema.check(database)
    return database
  }

  /// Throws a `FlowError` unless a folder has a store that this user may read.
  package static func checkExists(_ folder: ByteString) throws(FlowError) {
    guard let found = (folder + "/store.sqlite").withCString({ access($0, R_OK) }) else {
      throw StoreProblem.other.error("the path '\(folder.escapingNUL)' has a NUL byte in it")
    }
    if found == 0 { return }
    if errno == ENOENT || errno == ENOTDIR {
      throw StoreProblem.missing.error("there is no store '\(folder)'", code: ENOENT)
    }
    throw StoreProblem.system("read", folder, errno)
  }

  /// SQLite would only report that it can't open a file.
  private static func checkAccess(_ folder: ByteString) throws(FlowError) {
    let database = folder + "/store.sqlite"
    let allowed = folder.withCString { access($0, R_OK | W_OK | X_OK) }
    if allowed != .some(0) { throw StoreProblem.system("write", folder, errno) }
    let usable = database.withCString { access($0, R_OK | W_OK) }
    if usable != .some(0), errno != ENOENT { throw StoreProblem.system("write", folder, errno) }
  }

  /// The size of a file in the folder; 0 for one that doesn't exist.
  static func fileSize(_ name: ByteString, in folder: ByteString) throws(FlowError) -> Int64 {
    do throws(SystemError) {
      return try FileStatus.read(folder + "/" + name, follows: true)?.size ?? 0
    } catch {
      throw StoreProblem.system("read", folder, error.code ?? EIO)
    }
  }

  /// The digest of bytes with the key of this store.
  package func digest(_ bytes: UnsafeRawBufferPointer) throws(FlowError) -> Digest {
    try digests.digest(of: bytes)
  }

  /// The digest of bytes with the key of this store.
  package func digest(_ bytes: ByteString) throws(FlowError) -> Digest {
    try digests.digest(of: bytes.bytes)
  }

  /// The encoded value of a write; nil for a key that was removed. A large one is read from its file.
  ///
  /// - Throws: A `FlowError` when the file is missing or isn't what was written.
  package func load(_ write: KeptWrite) throws(FlowError) -> ByteString? {
    switch write.content {
    case .removed: nil
    case .bytes(let bytes): bytes
    case .file(let file): try ValueFiles.read(file, in: folder, with: digests)
    }
  }
}

/// Checking that a store is what was written.
extension JournalStore {
  /// Something in a store that isn't what was written.
  package struct Damage: Sendable {
    /// The run that it is about; nil for the store as a whole.
    package let run: ByteString?
    package let message: ByteString
  }

  /// Reads everything, and returns what isn't as it was written; blocks for as long as that takes.
  package func verify() -> [Damage] {
    var damages: [Damage] = []
    func attempt(_ run: ByteString?, _ body: () throws(FlowError) -> Void) {
      do throws(FlowError) { try body() } catch {
        damages.append(Damage(run: run, message: error.message))
      }
    }
    attempt(nil) { () throws(FlowError) in
      if let message = try ChangeLogCheck.problem(in: folder) {
        damages.append(Damage(run: nil, message: message))
      }
    }
    attempt(nil) { () throws(FlowError) in
      let check = try database.prepare("PRAGMA integrity_check(20)")
      defer { check.reset() }
      while try check.step() {
        let text = check.text(0)
        if text != "ok" { damages.append(Damage(run: nil, message: "database: \(text)")) }
      }
    }
    attempt(nil) { () throws(FlowError) in
      if try StoreSchema.hasFiles(database), try !files.isSound() {
        let message = "the known content of a file isn't what was written" as ByteString
        damages.append(Damage(run: nil, message: message))
      }
    }
    attempt(nil) { () throws(FlowError) in
      if try StoreSchema.hasCodes(database), try !codes.isSound() {
        let message = "what code consists of isn't what was written" as ByteString
        damages.append(Damage(run: nil, message: message))
      }
    }
    attempt(nil) { () throws(FlowError) in
      if try StoreSchema.hasMessages(database), try !messages.isSound() {
        let message = "a message isn't what was written" as ByteString
        damages.append(Damage(run: nil, message: message))
      }
    }
    var runs: [RunRow] = []
    attempt(nil) { () throws(FlowError) in runs = try rows() }
    for run in runs {
      if !run.isSound {
        damages.append(Damage(run: run.name, message: "the run itself isn't what was written"))
      }
      attempt(run.name) { () throws(FlowError) in
        let first = RecordTable.numbers(of: run.number).lowerBound
        try table.read(run: run.number) { id, record throws(FlowError) in
          guard let record else {
            let message = "record \(id - first) isn't what was written" as ByteString
            damages.append(Damage(run: run.name, message: message))
            return
          }
          for write in record.writes {
            attempt(run.name) { () throws(FlowError) in _ = try load(write) }
          }
        }
      }
    }
    return damages
  }
}

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
      let name = ByteString(entry.path.bytes.dropFirst(folder.count + 1))
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
      try database.prepare(
        "DELETE FROM records WHERE id >= ?1 AND id < ?2", numbers.lowerBound, numbers.upperBound
      ).run()
      try database.prepare("DELETE FROM runs WHERE number = ?1", run.number).run()
      try codes.remove(run.number)
      try messages.remove(run.number)
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
      let name = entry.path.fileName
      if !names.contains(name) { try ValueFiles.remove(name, in: folder) }
    }
  }

  /// Returns unused pages to the file system, as far as no other process is in the way.
  private func shrink() throws(FlowError) {
    try database.execute("PRAGMA incremental_vacuum")
    try database.execute("PRAGMA wal_checkpoint(PASSIVE)")
  }
}
