internal import CFlowLua
internal import CLua

/// How rows of CSV are read.
package struct CSVReading {
  /// The type of the fields of a column.
  package enum FieldType: UInt8, Sendable {
    /// A string, as it stands.
    case string = 0
    /// An integer.
    case integer = 1
    /// An integer or a float.
    case number = 2
    /// `true` or `false`, in capitals or not.
    case boolean = 3
  }

  /// The byte between two fields.
  package var separator = UInt8(ascii: ",")
  /// How many fields a row has; 0 for any number.
  package var columnCount = 0
  /// The names of the columns, a list, for rows that are records; nil for lists.
  package var names: LuaReference?
  private var types: [UInt8] = []

  /// The defaults of `csv.rows`, for rows that are lists.
  package init() {}

  /// Sets the type of a column, from 1. An empty field of an optional one is nil.
  package mutating func setType(_ type: FieldType, isOptional: Bool, ofColumn column: Int) {
    guard column >= 1 else { return }
    if types.count < column {
      types += Array(repeating: FieldType.string.rawValue, count: column - types.count)
    }
    types[column - 1] = type.rawValue | (isOptional ? UInt8(FLOWLUA_CSV_OPTIONAL) : 0)
  }

  fileprivate func withRaw<Result>(
    isLast: Bool, _ body: (inout flowlua_csv_reading) -> Result
  ) -> Result {
    types.withUnsafeBufferPointer { types in
      var raw = flowlua_csv_reading(
        separator: separator, is_last: isLast, column_count: Int32(clamping: columnCount),
        names: names?.id ?? 0, types: types.baseAddress, type_count: Int32(clamping: types.count))
      return body(&raw)
    }
  }
}

/// The next row of a text of CSV, or why there is none.
package enum CSVRow {
  /// A row.
  case row
  /// It goes beyond the bytes.
  case incomplete
  /// There is none.
  case end
  /// The mistake, and the character in its line, from 1.
  case problem(String, column: Int)
  /// The row has another number of fields than it must have.
  case wrongCount(Int)
}

/// Where the next row of a text of CSV begins and ends.
package struct CSVPlace {
  /// How many bytes were read.
  package var bytes = 0
  /// How many empty lines were skipped.
  package var emptyLines = 0
  /// How many lines the row has, and how many of them end before its problem.
  package var lines = 0
  package var linesBeforeProblem = 0
  /// How many fields it has.
  package var fields = 0
}

/// Rows that can't be written as CSV.
package struct CSVValueError: Error, Sendable {
  /// `can't encode a value of type table in row 3, column 2`.
  package let message: ByteString
}

extension LuaVM {
  /// The next row of a text, from an offset on: a table. `isLast` says that nothing follows the bytes.
  package func readCSV(
    _ bytes: [UInt8], from start: Int, isLast: Bool, _ options: CSVReading
  ) throws -> (row: CSVRow, place: CSVPlace, table: LuaReference?) {
    try enter()
    let lua = running
    let (row, place) = try pushCSV(bytes, start, isLast, options)
    guard case .row = row else { return (row, place, nil) }
    return (row, place, try popReference(lua, .table))
  }

  fileprivate func pushCSV(
    _ bytes: [UInt8], _ start: Int, _ isLast: Bool, _ options: CSVReading
  ) throws -> (CSVRow, CSVPlace) {
    var raw = flowlua_csv_row()
    let status = bytes.withUnsafeBytes { bytes in
      options.withRaw(isLast: isLast) { options in
        guard let base = bytes.baseAddress, start >= 0, start < bytes.count else {
          return flowlua_csv_decode(state, "" as String, 0, &options, &raw)
        }
        let from = (base + start).assumingMemoryBound(to: CChar.self)
        return flowlua_csv_decode(state, from, bytes.count - start, &options, &raw)
      }
    }
    try check(status)
    let place = CSVPlace(
      bytes: Int(raw.used), emptyLines: Int(raw.skipped_lines), lines: Int(raw.lines),
      linesBeforeProblem: Int(raw.problem_lines), fields: Int(raw.fields))
    switch Int(raw.outcome) {
    case FLOWLUA_CSV_ROW: return (.row, place)
    case FLOWLUA_CSV_INCOMPLETE: return (.incomplete, place)
    case FLOWLUA_CSV_END: return (.end, place)
    default:
      let problem = raw.problem.map { String(cString: $0) } ?? ""
      if raw.fields > 0 { return (.wrongCount(Int(raw.fields)), place) }
      let text = raw.is_at_end ? "\(problem), got the end of the text" : problem
      return (.problem(text, column: Int(raw.problem_column)), place)
    }
  }
}

extension LuaCall {
  /// Reads a row like `LuaVM.readCSV`, with the row as the answer unless `isTaken` drops it.
  package func readCSV(
    _ bytes: [UInt8], from start: Int, isLast: Bool, _ options: CSVReading,
    isTaken: (CSVPlace) -> Bool
  ) throws -> (row: CSVRow, place: CSVPlace, answer: LuaAnswer?) {
    let (row, place) = try vm.pushCSV(bytes, start, isLast, options)
    guard case .row = row else { return (row, place, nil) }
    guard isTaken(place) else {
      lua_settop(lua, -2)
      return (row, place, nil)
    }
    return (row, place, answerTop())
  }

  /// The CSV of an argument, a list of rows. `columns` is a list of names. Throws a `CSVValueError` for
  /// rows that can't be written. No metamethod runs.
  package func encodeCSV(
    _ index: Int, columns: LuaReference?, separator: UInt8, hasHeader: Bool, endsWithCRLF: Bool
  ) throws -> LuaAnswer {
    var options = flowlua_csv_writing(
      separator: separator, writes_header: hasHeader, ends_with_crlf: endsWithCRLF)
    var problem = flowlua_csv_problem()
    let status = flowlua_csv_encode(
      raw.pointee.state, lua, Int32(index), columns?.id ?? 0, &options, &problem)
    if status == Int32(FLOWLUA_NOT_ENCODED) { throw CSVValueError(&problem) }
    try vm.check(status)
    return answerTop()
  }
}

extension CSVValueError {
  fileprivate init(_ raw: inout flowlua_csv_problem) {
    var text: String
    if let problem = raw.problem {
      text = String(cString: problem)
    } else {
      let name = withUnsafeBytes(of: &raw.type_name) {
        ByteString($0.prefix { $0 != 0 })
      }
      text = "a value of type \(name)"
    }
    if raw.row > 0 { text += " in row \(raw.row)" }
    if raw.column > 0 {
      text += raw.row > 0 ? ", column \(raw.column)" : " in column \(raw.column)"
    }
    message = ByteString("can't encode \(text)")
  }
}
