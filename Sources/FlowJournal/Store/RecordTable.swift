internal import FlowEngine

/// The records of runs, as rows of a table of one connection.
///
/// The number of a record is its run's, followed by 40 bits of its own.
final class RecordTable {
  private let database: StoreDatabase
  private let digests: DigestMaker
  private var insert: StoreStatement?
  private var sum = RowSum()
  /// The columns that the table has, by their positions in both statements.
  private let columns: ByteString

  init(_ database: StoreDatabase, _ digests: DigestMaker) throws(FlowError) {
    self.database = database
    self.digests = digests
    // A store of an earlier version that is only read has no columns for the number of the outer record, and for lines.
    columns =
      Self.columns + (try StoreSchema.hasOuter(database) ? ", around" : ", NULL")
      + (try StoreSchema.hasLines(database) ? ", why, lines" : ", NULL, NULL")
  }

  /// How many runs a store can have in its life: their numbers have 22 bits.
  static let lastRun: Int64 = 1 << 22 - 1

  /// The numbers of a run's records; empty for a number that no run has.
  static func numbers(of run: Int64) -> Range<Int64> {
    guard run > 0, run <= lastRun else { return 0..<0 }
    return run << 40..<(run + 1) << 40
  }

  /// The number of the run of a record.
  static func run(of record: Int64) -> Int64 { record >> 40 }

  private static let columns: ByteString =
    "id, state, attempt, is_once, began, ended, sum, code, op, path, key, label, place, error, "
    + "inputs, reads, writes, cache"

  /// Adds or replaces the row of a record.
  func write(_ record: OpRecord) throws(FlowError) {
    let insert = try insertStatement()
    let isOnce: Int64 = record.isOnce ? 1 : 0
    // NaN is no number of the database.
    let began = record.began.isNaN ? 0 : record.began
    let ended = record.ended.isNaN ? 0 : record.ended
    insert.bind(1, record.id)
    insert.bind(2, record.state.rawValue)
    insert.bind(3, Int64(record.attempt))
    insert.bind(4, isOnce)
    insert.bind(5, began)
    insert.bind(6, ended)
    insert.bind(8, record.code)
    sum.removeAll()
    for number in [record.id, record.state.rawValue, Int64(record.attempt), isOnce] {
      sum.add(number)
    }
    sum.add(began)
    sum.add(ended)
    sum.add(record.code)
    let texts = [
      record.op, record.path, record.key, record.label, record.place, record.error,
      ByteString(record.inputs.formBytes), ByteString(record.reads.formBytes),
      ByteString(record.writes.formBytes),
    ]
    for (index, text) in texts.enumerated() {
      insert.bind(Int32(9 + index), text)
      sum.add(text)
    }
    if let key = record.cacheKey {
      insert.bind(18, key)
      sum.add(key)
    } else {
      sum.add(nil as ByteString?)
    }
    if let outer = record.outer {
      insert.bind(19, outer)
      sum.add(outer)
    }
    let notes = [record.why, record.lines.isEmpty ? nil : ByteString(record.lines.formBytes)]
    for (index, note) in notes.enumerated() { insert.bind(Int32(20 + index), note) }
    if notes.contains(where: { $0 != nil }) { for note in notes { sum.add(note) } }
    insert.bind(7, try digest())
    Failpoint.pass()
    try insert.run()
    Failpoint.pass()
  }

  private func insertStatement() throws(FlowError) -> StoreStatement {
    if let insert { return insert }
    let made = try database.prepare(
      "INSERT OR REPLACE INTO records(\(columns)) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
        + "?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)")
    insert = made
    return made
  }

  private func digest() throws(FlowError) -> Digest {
    try digests.digest(of: sum.bytes)
  }

  /// A guess how many records a run has, at most: rows that were changed may have any number.
  func mostRecords(of run: Int64) throws(FlowError) -> Int {
    let numbers = Self.numbers(of: run)
    let select = try database.prepare(
      "SELECT max(id) FROM records WHERE id >= ?1 AND id < ?2", numbers.lowerBound,
      numbers.upperBound)
    let last = try select.first { $0.integer(0) } ?? 0
    return Int(max(0, min(last - numbers.lowerBound, 1 << 20)))
  }

  /// Reads the records of a run, the oldest first. One that isn't what was written is nil, with its number.
  func read(
    run number: Int64, _ body: (_ id: Int64, OpRecord?) throws(FlowError) -> Void
  ) throws(FlowError) {
    let numbers = Self.numbers(of: number)
    let select = try database.prepare(
      "SELECT \(columns) FROM records WHERE id >= ?1 AND id < ?2 ORDER BY id", numbers.lowerBound,
      numbers.upperBound)
    defer { select.reset() }
    var names = SharedTexts()
    while try select.step() { try body(select.integer(0), record(select, &names)) }
  }

  /// The last finished record of this key, in any run; nil without one that is what was written.
  func cached(_ key: Digest) throws(FlowError) -> OpRecord? {
    let select = try database.prepare(
      "SELECT \(columns) FROM records WHERE cache = ?1 AND state = 1 ORDER BY id DESC LIMIT 1", key)
    defer { select.reset() }
    var names = SharedTexts()
    return try select.step() ? record(select, &names) : nil
  }

  private func record(
    _ row: StoreStatement, _ names: inout SharedTexts
  ) throws(FlowError) -> OpRecord? {
    sum.removeAll()
    for column in 0..<4 as Range<Int32> { sum.add(row.integer(column)) }
    sum.add(row.double(4))
    sum.add(row.double(5))
    for column in 7..<18 as Range<Int32> { sum.add(column, of: row) }
    // The digests of records without it are those of the versions that wrote them.
    let outer = row.isNull(18) ? nil : row.integer(18)
    if let outer { sum.add(outer) }
    if !row.isNull(19) || !row.isNull(20) {
      for column in 19...20 as ClosedRange<Int32> { sum.add(column, of: row) }
    }
    guard row.digest(6) == (try digest()), let state = OpRecord.State(rawValue: row.integer(1)),
      let code = row.digest(7), let attempt = Int(exactly: row.integer(2)),
      let inputs = row.withBytes(14, { [KeptInput].decode($0, expecting: names.input) }),
      let reads = row.withBytes(15, { [KeptInput].decode($0) }),
      let writes = row.withBytes(16, { [KeptWrite].decode($0, expecting: names.output) }),
      let lines = row.isNull(20) ? [] : row.withBytes(20, { [ByteString].decode($0) })
    else { return nil }
    names.input = inputs.first?.name
    names.output = writes.first?.name
    return OpRecord(
      id: row.integer(0), outer: outer, path: row.text(9), op: names.text(0, row, 8),
      label: row.optionalText(11), code: code, inputs: inputs, reads: reads, state: state,
      attempt: attempt, began: row.double(4), ended: row.double(5), key: row.text(10),
      writes: writes, isOnce: row.integer(3) != 0, error: row.optionalText(13),
      place: row.isNull(12) ? nil : names.text(1, row, 12),
      cacheKey: row.digest(17), why: row.isNull(19) ? nil : names.text(2, row, 19),
      lines: lines)
  }
}

extension OpRecord {
  /// The number of the record within its run; 0 for a new one.
  var number: Int64 { id & (1 << 40 - 1) }
}

/// The last texts of columns that mostly repeat: their records share them.
private struct SharedTexts {
  private var last: [ByteString] = ["", "", ""]
  /// The names of the first input and of the first write.
  var input: ByteString?
  var output: ByteString?

  mutating func text(_ slot: Int, _ row: StoreStatement, _ column: Int32) -> ByteString {
    let isSame = row.withBytes(column) { $0.elementsEqual(last[slot].bytes) }
    if !isSame { last[slot] = row.text(column) }
    return last[slot]
  }
}

/// Collects what the digest of a row is about: all its columns, each with its length.
struct RowSum {
  private(set) var bytes: [UInt8] = []

  mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  mutating func add(_ number: Int64) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func add(_ number: Double) { add(Int64(bitPattern: number.bitPattern)) }

  mutating func add(_ part: UnsafeRawBufferPointer) {
    add(Int64(part.count))
    bytes.append(contentsOf: part)
  }

  mutating func add(_ text: ByteString?) {
    guard let text else { return add(-1 as Int64) }
    text.withUnsafeBytes { add(UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ digest: Digest) { digest.withBytes { add($0) } }

  /// Adds a column of bytes, or of NULL.
  mutating func add(_ column: Int32, of row: StoreStatement) {
    if row.isNull(column) { return add(-1 as Int64) }
    row.withBytes(column) { add($0) }
  }
}
