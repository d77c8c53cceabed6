internal import CSQLite
internal import FlowEngine

/// A prepared statement of a connection, which must outlive it.
final class StoreStatement {
  private let raw: OpaquePointer
  /// The kind of the statement, for messages: `read` or `write`.
  private let verb: String
  private unowned let database: StoreDatabase
  private var code = SQLITE_OK

  init(_ raw: OpaquePointer, verb: String, of database: StoreDatabase) {
    self.raw = raw
    self.verb = verb
    self.database = database
  }

  /// Releases the statement; called once, by the connection.
  func finalize() { csqlite_finalize(raw) }

  // Binding: parameters are counted from 1. A failure is one of the next step.

  func bind(_ index: Int32, _ number: Int64) { note(csqlite_bind_integer(raw, index, number)) }

  func bind(_ index: Int32, _ number: Double) {
    // NaN would become NULL.
    note(csqlite_bind_double(raw, index, number.isNaN ? 0 : number))
  }

  func bind(_ index: Int32, _ text: ByteString?) {
    // An unbound parameter is NULL.
    text?.withUnsafeBytes { bind(index, UnsafeRawBufferPointer($0)) }
  }

  func bind(_ index: Int32, _ digest: Digest) { digest.withBytes { bind(index, $0) } }

  func bind(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
    note(csqlite_bind_bytes(raw, index, bytes.baseAddress, bytes.count))
  }

  private func note(_ new: Int32) {
    if code == SQLITE_OK { code = new }
  }

  /// Continues to the next row; false at the end, after which it can be executed again.
  func step() throws(FlowError) -> Bool {
    if code == SQLITE_OK { code = csqlite_step(raw) }
    switch code {
    case SQLITE_ROW:
      code = SQLITE_OK
      return true
    case SQLITE_DONE:
      reset()
      return false
    default:
      let error = database.failure(verb)
      reset()
      throw error
    }
  }

  /// Executes a statement without rows.
  func run() throws(FlowError) {
    while try step() {}
  }

  /// The first row by `read`; nil without one.
  func first<Result>(_ read: (StoreStatement) -> Result) throws(FlowError) -> Result? {
    guard try step() else { return nil }
    let result = read(self)
    reset()
    return result
  }

  /// Ends an execution before its last row.
  func reset() {
    csqlite_reset(raw)
    code = SQLITE_OK
  }

  // Columns of a row, counted from 0.

  func integer(_ column: Int32) -> Int64 { csqlite_integer(raw, column) }
  func double(_ column: Int32) -> Double { csqlite_double(raw, column) }
  func isNull(_ column: Int32) -> Bool { csqlite_is_null(raw, column) }

  /// Lends the bytes of a column.
  func withBytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    var count = 0
    let start = csqlite_bytes(raw, column, &count)
    return body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
  }

  func text(_ column: Int32) -> ByteString { withBytes(column) { ByteString($0) } }
  func optionalText(_ column: Int32) -> ByteString? { isNull(column) ? nil : text(column) }
  func digest(_ column: Int32) -> Digest? { withBytes(column) { Digest($0) } }
}

/// A value of a row.
protocol StoreValue {
  func bind(to statement: StoreStatement, _ index: Int32)
}

extension Int64: StoreValue {
  func bind(to statement: StoreStatement, _ index: Int32) { statement.bind(index, self) }
}

extension Double: StoreValue {
  func bind(to statement: StoreStatement, _ index: Int32) { statement.bind(index, self) }
}

extension ByteString: StoreValue {
  func bind(to statement: StoreStatement, _ index: Int32) { statement.bind(index, self) }
}

extension Digest: StoreValue {
  func bind(to statement: StoreStatement, _ index: Int32) { statement.bind(index, self) }
}
