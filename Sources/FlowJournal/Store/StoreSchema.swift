internal import FlowEngine
internal import FlowSystem

/// The tables of a store.
enum StoreSchema {
  /// The version that this program makes and reads. A later one needs a later program.
  static let version: Int64 = 6

  /// The tables, whose columns are read and bound by their positions.
  ///
  /// Small columns come first: lists of runs count records without reading what they keep. The number of a record
  /// contains its run's, so the records of a run lie together without an index. `sum` is the digest of everything
  /// else in a record, and of what never changes in a run.
  private static let tables: [ByteString] = [
    """
    CREATE TABLE runs(
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      name BLOB NOT NULL UNIQUE, script BLOB NOT NULL, words BLOB NOT NULL,
      seed INTEGER NOT NULL, began REAL NOT NULL, sum BLOB NOT NULL,
      is_finished INTEGER NOT NULL, ended REAL NOT NULL,
      epoch INTEGER NOT NULL, is_held INTEGER NOT NULL, pid INTEGER NOT NULL,
      host BLOB NOT NULL, boot BLOB NOT NULL, start INTEGER NOT NULL, beat REAL NOT NULL
    ) STRICT
    """,
    "CREATE INDEX runs_of_script ON runs(script, number)",
    """
    CREATE TABLE records(
      id INTEGER PRIMARY KEY,
      state INTEGER NOT NULL, attempt INTEGER NOT NULL, is_once INTEGER NOT NULL,
      began REAL NOT NULL, ended REAL NOT NULL,
      sum BLOB NOT NULL, code BLOB NOT NULL, op BLOB NOT NULL, path BLOB NOT NULL,
      key BLOB NOT NULL, label BLOB, place BLOB, error BLOB,
      inputs BLOB NOT NULL, reads BLOB NOT NULL, writes BLOB NOT NULL, cache BLOB
    ) STRICT
    """,
    // Costs nothing for records that other runs don't look for.
    "CREATE INDEX records_of_cache ON records(cache) WHERE cache IS NOT NULL",
  ]

  /// Since version 2: the contents of files that haven't changed needn't be read again.
  private static let files: ByteString = """
    CREATE TABLE files(
      device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL,
      modified INTEGER NOT NULL, changed INTEGER NOT NULL, content BLOB NOT NULL,
      hashed REAL NOT NULL, sum BLOB NOT NULL, PRIMARY KEY(device, inode)
    ) STRICT, WITHOUT ROWID
    """

  /// Since version 3: the number of the record of the op that has executed an op.
  private static let around: ByteString = "ALTER TABLE records ADD COLUMN around INTEGER"

  /// Since version 4: what the code of the ops of a run consists of.
  private static let codes: ByteString = """
    CREATE TABLE codes(
      run INTEGER NOT NULL, code BLOB NOT NULL, details BLOB NOT NULL, sum BLOB NOT NULL,
      PRIMARY KEY(run, code)
    ) STRICT, WITHOUT ROWID
    """

  /// Since version 5: messages to runs, and what runs wait for. `taken` names the wait that has a message.
  private static let messages: [ByteString] = [
    """
    CREATE TABLE messages(
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      run INTEGER NOT NULL, name BLOB NOT NULL, target INTEGER NOT NULL, form INTEGER NOT NULL,
      value BLOB NOT NULL, sent REAL NOT NULL, sum BLOB NOT NULL, taken BLOB
    ) STRICT
    """,
    """
    CREATE TABLE waits(
      run INTEGER NOT NULL, wait BLOB NOT NULL, name BLOB NOT NULL, ask BLOB, type BLOB,
      began REAL NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY(run, wait)
    ) STRICT, WITHOUT ROWID
    """,
  ]

  /// Since version 6: why an op was executed, and the lines of its log; and a message is found at once among very many.
  private static let lines: [ByteString] = [
    "ALTER TABLE records ADD COLUMN why BLOB",
    "ALTER TABLE records ADD COLUMN lines BLOB",
    "DROP INDEX IF EXISTS messages_of_run",
    "CREATE INDEX messages_taken ON messages(run, taken, name)",
  ]

  /// Sets what a connection that writes has to have, and makes the tables of a new database.
  static func prepare(_ database: StoreDatabase) throws(FlowError) {
    // The first setting only has an effect in a new database, and the second one writes it.
    try database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    try useChangeLog(database)
    try database.execute("PRAGMA synchronous = FULL")
    if try version(of: database) >= version { return try check(database) }
    try database.transaction { () throws(FlowError) in
      // Another process may have been faster.
      let present = try version(of: database)
      if present >= version { return }
      if present < 1 { for table in tables { try database.execute(table) } }
      if present < 2 { try database.execute(files) }
      if present < 3 { try database.execute(around) }
      if present < 4 { try database.execute(codes) }
      if present < 5 { for table in messages { try database.execute(table) } }
      for change in lines { try database.execute(change) }
      try database.execute("PRAGMA user_version = \(version)")
    }
    try check(database)
  }

  /// Has SQLite write changes into a log first, so that a commit needs one flush of the disk.
  private static func useChangeLog(_ database: StoreDatabase) throws(FlowError) {
    // The disk of a busy machine may need seconds for each of them.
    let deadline = WallClock.now() + 20
    while true {
      do throws(FlowError) {
        let mode = try database.prepare("PRAGMA journal_mode = WAL").first { $0.text(0) }
        if mode == "wal" { return }
        throw StoreProblem.unsuitable.error(
          "the file system of the store '\(database.folder)' has no shared memory")
      } catch {
        // Two processes that make a store at once: SQLite doesn't wait for the other one here.
        guard error.storeProblem == .busy, WallClock.now() < deadline else { throw error }
        usleep(.random(in: 5_000...20_000))
      }
    }
  }

  /// Refuses a database that another version has made.
  static func check(_ database: StoreDatabase) throws(FlowError) {
    let found = try version(of: database)
    if found > version {
      throw StoreProblem.newer.error(
        "the store '\(database.folder)' was made by a later version of flowlua "
          + "(schema \(found); this one reads up to \(version))")
    }
    if found < 1 {
      let tables = try database.prepare("SELECT count(*) FROM sqlite_master").first {
        $0.integer(0)
      }
      if tables == 0 {
        // The process that was making it has ended before the tables were there; the next one makes them.
        throw StoreProblem.missing.error("there is no store '\(database.folder)'", code: ENOENT)
      }
      throw StoreProblem.damaged.error("'\(database.folder)/store.sqlite' is no store of flowlua")
    }
  }

  /// Whether the contents of files are in a database.
  static func hasFiles(_ database: StoreDatabase) throws(FlowError) -> Bool {
    try version(of: database) > 1
  }

  /// Whether records have the number of the outer record.
  static func hasOuter(_ database: StoreDatabase) throws(FlowError) -> Bool {
    try version(of: database) > 2
  }

  /// Whether what code consists of is in a database.
  static func hasCodes(_ database: StoreDatabase) throws(FlowError) -> Bool {
    try version(of: database) > 3
  }

  /// Whether messages are in a database.
  static func hasMessages(_ database: StoreDatabase) throws(FlowError) -> Bool {
    try version(of: database) > 4
  }

  /// Whether records have lines of logs.
  static func hasLines(_ database: StoreDatabase) throws(FlowError) -> Bool {
    try version(of: database) > 5
  }

  private static func version(of database: StoreDatabase) throws(FlowError) -> Int64 {
    try database.prepare("PRAGMA user_version").first { $0.integer(0) } ?? 0
  }
}
