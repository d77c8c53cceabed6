internal import FlowEngine
internal import FlowLoop

/// The content of a file, which hasn't changed as long as its stamp is the same.
struct KnownFile: Sendable {
  let stamp: FileStamp
  /// The digest of the content.
  let content: Digest
}

/// The known contents of files, as rows of a table of one connection: such a file isn't read again.
final class FileTable {
  private let database: StoreDatabase
  private let digests: DigestMaker
  /// Whether there is one: not in a store of an earlier version that is only read.
  private var isThere: Bool?

  init(_ database: StoreDatabase, _ digests: DigestMaker) {
    self.database = database
    self.digests = digests
  }

  /// How long a content is known without being read again, in seconds.
  private static let keptTime = 30.0 * 86_400

  private static let columns: ByteString =
    "device, inode, size, modified, changed, content, hashed, sum"

  /// Adds or replaces the row of a file.
  func write(_ file: KnownFile, at time: Double) throws(FlowError) {
    let insert = try database.prepare(
      "INSERT OR REPLACE INTO files(\(Self.columns)) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
    for (index, number) in Self.numbers(file.stamp).enumerated() {
      insert.bind(Int32(index + 1), number)
    }
    insert.bind(6, file.content)
    insert.bind(7, time)
    insert.bind(8, try sum(file))
    try insert.run()
  }

  /// The content of the file with a stamp; nil when it isn't known, or the row isn't what was written.
  func content(of stamp: FileStamp) throws(FlowError) -> Digest? {
    if isThere == nil { isThere = try StoreSchema.hasFiles(database) }
    if isThere == false { return nil }
    let select = try database.prepare(
      "SELECT \(Self.columns) FROM files WHERE device = ?1 AND inode = ?2",
      Int64(bitPattern: stamp.device), Int64(bitPattern: stamp.inode))
    defer { select.reset() }
    guard try select.step(), let file = try file(select), file.stamp == stamp else { return nil }
    return file.content
  }

  /// Whether all rows are what was written.
  func isSound() throws(FlowError) -> Bool {
    let select = try database.prepare("SELECT \(Self.columns) FROM files")
    defer { select.reset() }
    while try select.step() {
      if try file(select) == nil { return false }
    }
    return true
  }

  /// Removes rows that are old.
  func prune(at time: Double) throws(FlowError) {
    // Without rows to remove it doesn't wait for other processes that write.
    let old = try database.prepare(
      "SELECT 1 FROM files WHERE hashed < ?1 LIMIT 1", time - Self.keptTime)
    if try old.first({ _ in true }) == nil { return }
    try database.prepare("DELETE FROM files WHERE hashed < ?1", time - Self.keptTime).run()
  }

  /// The file of a row; nil when the row isn't what was written.
  private func file(_ row: StoreStatement) throws(FlowError) -> KnownFile? {
    guard let content = row.digest(5) else { return nil }
    let stamp = FileStamp(
      device: UInt64(bitPattern: row.integer(0)), inode: UInt64(bitPattern: row.integer(1)),
      size: row.integer(2), modified: row.integer(3), changed: row.integer(4))
    let file = KnownFile(stamp: stamp, content: content)
    return row.digest(7) == (try sum(file)) ? file : nil
  }

  private static func numbers(_ stamp: FileStamp) -> [Int64] {
    [
      Int64(bitPattern: stamp.device), Int64(bitPattern: stamp.inode), stamp.size, stamp.modified,
      stamp.changed,
    ]
  }

  private func sum(_ file: KnownFile) throws(FlowError) -> Digest {
    var sum = RowSum()
    for number in Self.numbers(file.stamp) { sum.add(number) }
    sum.add(file.content)
    return try digests.digest(of: sum.bytes)
  }
}

/// The code of ops with what it consists of, so that a later process can say what has changed.
struct KnownCode: Sendable {
  /// Something that it consists of.
  struct Detail: Sendable {
    enum Content: Equatable, Sendable {
      case shown(ByteString)
      case hidden(Digest)
    }

    /// The words for it; empty for the op's function itself.
    var name: ByteString
    var content: Content
  }

  let code: Digest
  var details: [Detail]
}

/// The known code of the ops of runs, as rows of a table of one connection.
final class CodeTable {
  private let database: StoreDatabase
  private let digests: DigestMaker
  /// Whether there is one: not in a store of an earlier version that is only read.
  private var isThere: Bool?

  init(_ database: StoreDatabase, _ digests: DigestMaker) {
    self.database = database
    self.digests = digests
  }

  /// Adds the row of a code, unless the run has it.
  func write(_ code: KnownCode, of run: Int64) throws(FlowError) {
    let insert = try database.prepare(
      "INSERT OR IGNORE INTO codes(run, code, details, sum) VALUES(?1, ?2, ?3, ?4)")
    let details = ByteString(code.details.formBytes)
    insert.bind(1, run)
    insert.bind(2, code.code)
    insert.bind(3, details)
    insert.bind(4, try sum(run, code.code, details))
    try insert.run()
  }

  /// The parts of a code of a run; empty when they aren't known, or the row isn't what was written.
  func details(of code: Digest, in run: Int64) throws(FlowError) -> [KnownCode.Detail] {
    if isThere == nil { isThere = try StoreSchema.hasCodes(database) }
    if isThere == false { return [] }
    let select = try database.prepare(
      "SELECT run, code, details, sum FROM codes WHERE run = ?1 AND code = ?2", run, code)
    defer { select.reset() }
    return try select.step() ? try known(select)?.details ?? [] : []
  }

  /// Whether all rows are what was written.
  func isSound() throws(FlowError) -> Bool {
    let select = try database.prepare("SELECT run, code, details, sum FROM codes")
    defer { select.reset() }
    while try select.step() {
      if try known(select) == nil { return false }
    }
    return true
  }

  /// Removes the rows of a run.
  func remove(_ run: Int64) throws(FlowError) {
    try database.prepare("DELETE FROM codes WHERE run = ?1", run).run()
  }

  /// The code of a row; nil when the row isn't what was written.
  private func known(_ row: StoreStatement) throws(FlowError) -> KnownCode? {
    guard let code = row.digest(1),
      row.digest(3) == (try sum(row.integer(0), code, row.text(2))),
      let details = row.withBytes(2, { [KnownCode.Detail].decode($0) })
    else { return nil }
    return KnownCode(code: code, details: details)
  }

  private func sum(
    _ run: Int64, _ code: Digest, _ details: ByteString
  ) throws(FlowError) -> Digest {
    var sum = RowSum()
    sum.add(run)
    sum.add(code)
    sum.add(details)
    return try digests.digest(of: sum.bytes)
  }
}
