internal import FlowEngine

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
    let insert = try database.prepare("INSERT OR REPLACE INTO mirrored VALUES(?1, ?2, ?3, ?4)")
    insert.bind(1, run)
    insert.bind(4, isFetched ? 1 : 0 as Int64)
    insert.bind(2, Int64(bitPattern: position.first))
    insert.bind(3, Int64(bitPattern: position.last))
    try insert.run()
  }

  /// The number of the last message that a run in the store has, and whether it was fetched; nil for a run that isn't
  /// that of a server.
  static func position(
    of run: Int64, in database: StoreDatabase
  ) throws(FlowError) -> (last: UInt64, isFetched: Bool)? {
    let select = try database.prepare("SELECT last, is_fetched FROM mirrored WHERE run = ?1")
    select.bind(1, run)
    return try select.first { (UInt64(bitPattern: $0.integer(0)), $0.integer(1) != 0) }
  }

  /// Forgets how far a run is kept, if there is a table.
  static func remove(_ run: Int64, in database: StoreDatabase) throws(FlowError) {
    let table = try database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'mirrored'")
    guard try table.first({ _ in true }) != nil else { return }
    let delete = try database.prepare("DELETE FROM mirrored WHERE run = ?1")
    delete.bind(1, run)
    try delete.run()
  }
}
