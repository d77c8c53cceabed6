internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.csv`: CSV to tables and back.
struct CSVBindings {
  let host: ScriptHost

  /// Makes the module `flow.csv`.
  func makeModule() throws -> LuaReference {
    let rows = try CSVRows.defineType("csv.rows", host)
    let module = try host.vm.makeTable()
    try host.vm.set(
      functions: [
        "rows": host.bind { host, call in
          let value = try host.vm.value(of: try CSVRows(host, call), rows)
          // The last one is closed when the loop ends, however it ends.
          return call.answer([value, .nil, .nil, value])
        },
        "encode": host.bind { host, call in try Self(host: host).encode(call) },
      ], in: module)
    return module
  }

  private func encode(_ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(host, call, "encode")
    _ = try arguments.table(1)
    var columns: LuaReference?
    var separator = UInt8(ascii: ",")
    var hasHeader = true
    var endsWithCRLF = false
    if !arguments.isNil(2) {
      let options = try arguments.options(2, known: ["columns", "header", "separator", "newline"])
      if let list = try options.table("columns") {
        guard let names = try host.strings(in: .reference(list)), !names.isEmpty else {
          throw options.wrong("columns", expected: "list of names")
        }
        columns = try host.vm.makeList(count: names.count) { .string(names[$0]) }
      }
      separator = try options.separator() ?? separator
      hasHeader = try options.boolean("header") ?? true
      endsWithCRLF = try options.choice("newline", ["\n", "\r\n"]) == "\r\n"
    }
    do {
      return try call.encodeCSV(
        1, columns: columns, separator: separator, hasHeader: hasHeader,
        endsWithCRLF: endsWithCRLF)
    } catch let error as CSVValueError {
      throw arguments.wrong(1, error.message)
    }
  }

  /// The error of a text that isn't CSV as it is expected.
  func csvError(
    _ call: LuaCall, _ path: ByteString?, _ problem: ByteString, line: Int, column: Int?
  ) -> any Error {
    let place = column.map { "line \(line), column \($0)" } ?? "line \(line)"
    var numbers: [(ByteString, Int)] = [("line", line)]
    if let column { numbers.append(("column", column)) }
    return host.textError(call, path, "\(problem) at \(place)", code: "csv", numbers)
  }
}

/// The rows of a text or file of CSV: what `csv.rows` returns.
final class CSVRows: TextIterator {
  private let text: TextPieces
  private var options = CSVReading()
  private var needsHeader = true
  private var isFirst = true
  private var line = 1
  private var types: [Types] = []
  private(set) var onError: LuaReference?
  /// The end of a row with too many bytes, which was reported; nil for none.
  private var excess: CSVRowEnd?

  /// The type of a column, which is known by its name or its number.
  private struct Types {
    let column: LuaValue
    let type: CSVReading.FieldType
    let isOptional: Bool
  }

  init(_ host: ScriptHost, _ call: LuaCall) throws {
    let arguments = Arguments(host, call, "rows")
    text = try TextPieces(arguments, 1, function: "csv.rows")
    if arguments.isNil(2) { return }
    let fields = try arguments.options(
      2, known: ["header", "separator", "types", "max_bytes", "on_error"])
    onError = try fields.function("on_error")
    text.maxBytes = try fields.count("max_bytes") ?? text.maxBytes
    options.separator = try fields.separator() ?? options.separator
    types = try Self.types(fields)
    switch fields.value("header") {
    case nil: break
    case .boolean(let hasHeader): needsHeader = hasHeader
    case .reference(let list) where list.kind == .table:
      try setNames(list, host) { arguments.wrong(2, "field 'header': \($0)") }
      needsHeader = false
    default: throw fields.wrong("header", expected: "boolean or list of names")
    }
    if !needsHeader, options.names == nil { try setTypes { arguments.wrong(2, $0) } }
  }

  func close() { text.close() }

  /// `{ n = "integer", when = "string?" }`.
  private static func types(_ fields: Options) throws -> [Types] {
    guard let table = try fields.table("types") else { return [] }
    return try fields.arguments.host.vm.pairs(of: table).map { column, value in
      let known: [ByteString: CSVReading.FieldType] = [
        "string": .string, "integer": .integer, "number": .number, "boolean": .boolean,
      ]
      guard case .string(let name) = value else {
        throw fields.wrong("types", expected: "table of strings")
      }
      let isOptional = name.bytes.last == UInt8(ascii: "?")
      guard let type = known[isOptional ? ByteString(name.bytes.dropLast()) : name] else {
        throw fields.arguments.wrong(
          fields.index,
          "field 'types': unknown type '\(name)'; known are 'boolean', 'integer', 'number', "
            + "'string', each also with '?'")
      }
      return Types(column: column, type: type, isOptional: isOptional)
    }
  }

  /// Makes rows records with these names.
  private func setNames(
    _ list: LuaReference, _ host: ScriptHost, _ wrong: (ByteString) -> any Error
  ) throws {
    guard let names = try host.strings(in: .reference(list)), !names.isEmpty else {
      throw wrong("a list of names expected")
    }
    var seen: Set<ByteString> = []
    for name in names where !seen.insert(name).inserted {
      throw wrong("two columns are named '\(name)'")
    }
    // A copy: the script could change its own.
    options.names = try host.vm.makeList(count: names.count) { .string(names[$0]) }
    options.columnCount = names.count
    try setTypes(names, wrong)
  }

  /// Sets the types of the columns; with names, they are known by them.
  private func setTypes(_ names: [ByteString] = [], _ wrong: (ByteString) -> any Error) throws {
    for type in types {
      let column: Int
      switch type.column {
      case .string(let name) where !names.isEmpty:
        guard let index = names.firstIndex(of: name) else {
          let near = NearestName.of(name, in: names)
          let hint = near.map { " (did you mean '\($0)'?)" } ?? ""
          throw wrong("field 'types': there is no column '\(name)'\(hint)")
        }
        column = index + 1
      case .integer(let number) where names.isEmpty && number >= 1 && number <= 100_000:
        column = Int(number)
      default:
        throw wrong(
          names.isEmpty
            ? "field 'types': without names, columns are numbers from 1 to 100000"
            : "field 'types': columns are named by strings")
      }
      options.setType(type.type, isOptional: type.isOptional, ofColumn: column)
    }
  }

  /// The next row; nil after the last one.
  func next(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    if isFirst, text.bytes.count >= 3 || !text.isIncomplete {
      // Spreadsheets begin with it.
      if text.bytes.starts(with: [0xEF, 0xBB, 0xBF]) { text.use(3) }
      isFirst = false
    }
    if isFirst { return try readMore(host, call) }
    if needsHeader, !(try readHeader(host, call)) {
      return text.isIncomplete ? try readMore(host, call) : call.answer(.nil)
    }
    while true {
      if excess != nil, !skipExcess() {
        return text.isIncomplete ? try readMore(host, call) : call.answer(.nil)
      }
      let (row, place, answer) = try call.readCSV(
        text.bytes, from: text.start, isLast: !text.isIncomplete, options
      ) { text.excess(text.rowBytes($0.bytes).count) == nil }
      if let answer {
        advance(place)
        // All rows have as many fields as the first one.
        if options.columnCount == 0 { options.columnCount = place.fields }
        return answer
      }
      switch try finish(row, place, host, call) {
      case .end: return call.answer(.nil)
      case .incomplete: return try readMore(host, call)
      case .leftOut: break
      }
    }
  }

  /// Reads the names of the columns; false when there are none yet, or never.
  private func readHeader(_ host: ScriptHost, _ call: LuaCall) throws -> Bool {
    var plain = CSVReading()
    plain.separator = options.separator
    let (row, place, table) = try host.vm.readCSV(
      text.bytes, from: text.start, isLast: !text.isIncomplete, plain)
    guard let table else {
      _ = try finish(row, place, host, call)
      return false
    }
    let number = line + place.emptyLines
    do {
      try setNames(table, host) { [unowned self] problem in
        CSVBindings(host: host).csvError(call, text.path, problem, line: number, column: nil)
      }
    } catch {
      close()
      throw error
    }
    needsHeader = false
    advance(place)
    return true
  }

  private func advance(_ place: CSVPlace) {
    text.use(place.bytes)
    line += place.emptyLines + place.lines
  }

  private enum Finish {
    case end, incomplete
    /// A row with a problem, which was reported.
    case leftOut
  }

  /// Finishes a call where there is no row. Throws the problem of one, or reports it; the next call reads the row
  /// after it. Without names of the columns nothing can.
  private func finish(
    _ row: CSVRow, _ place: CSVPlace, _ host: ScriptHost, _ call: LuaCall
  ) throws -> Finish {
    let problem: ByteString
    var column: Int?
    switch row {
    case .row:
      // All of it is there, but it is too long.
      let row = text.rowBytes(place.bytes)
      guard let problem = text.excess(row.count) else { return .incomplete }
      let error = excessError(problem, after: place.emptyLines, host, call)
      advance(place)
      try reportExcess(error, text: row, host)
      return .leftOut
    case .incomplete:
      // The empty lines before the row aren't needed any more.
      advance(place)
      return .incomplete
    case .end: return .end
    case .problem(let text, let place):
      problem = ByteString(text)
      column = place
    case .wrongCount(let count):
      let least = count > options.columnCount ? "at least " : ""
      problem = "expected \(options.columnCount) fields, got \(least)\(count)"
    }
    let error = CSVBindings(host: host).csvError(
      call, text.path, problem, line: line + place.emptyLines + place.linesBeforeProblem,
      column: column)
    if needsHeader {
      close()
      throw error
    }
    let row = ByteString(text.rowBytes(place.bytes))
    advance(place)
    try report(error, text: row, host)
    return .leftOut
  }

  private func readMore(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    if excess == nil, let problem = text.excess(text.rest.count) {
      let error = excessError(problem, after: 0, host, call)
      if needsHeader {
        close()
        throw error
      }
      excess = CSVRowEnd(separator: options.separator)
      try reportExcess(error, text: text.rest, host)
      _ = skipExcess()
    }
    return try text.readMore(host, call) { [unowned host] call in
      try self.next(host, call)
    }
  }

  /// Takes the bytes of a row with too many, as far as they are there; returns whether the row has ended.
  private func skipExcess() -> Bool {
    let count = excess?.skip(text.rest, isLast: !text.isIncomplete)
    if count != nil || !text.isIncomplete {
      line += excess?.lines ?? 0
      excess = nil
    }
    if let count { text.use(count) } else { text.useAll() }
    return count != nil
  }

  private func excessError(
    _ problem: ByteString, after emptyLines: Int, _ host: ScriptHost, _ call: LuaCall
  ) -> any Error {
    CSVBindings(host: host).csvError(call, text.path, problem, line: line + emptyLines, column: nil)
  }
}

/// Finds the end of a row of CSV, piece by piece.
struct CSVRowEnd {
  private enum Place {
    case field, plain, quoted
    /// After a quote in a field in quotes: its end, or half of a quote.
    case quote
    /// After a problem: the row ends with its line.
    case problem
    /// After a carriage return, which a line feed may follow.
    case end
  }

  private let separator: UInt8
  private var place = Place.field
  private var isAfterReturn = false
  /// How many lines have ended.
  private(set) var lines = 0

  init(separator: UInt8) {
    self.separator = separator
  }

  /// Reads more of the row. `isLast` says that nothing follows the bytes.
  ///
  /// - Returns: How many bytes belong to it; nil if it hasn't ended.
  mutating func skip(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> Int? {
    for (count, byte) in bytes.enumerated() {
      if place == .end { return byte == 0x0A ? count + 1 : count }
      let isFeed = byte == 0x0A
      if isFeed || byte == 0x0D {
        if !isFeed || !isAfterReturn { lines += 1 }
        isAfterReturn = !isFeed
        if place == .quoted { continue }
        if isFeed { return count + 1 }
        place = .end
        continue
      }
      isAfterReturn = false
      let isQuote = byte == UInt8(ascii: "\"")
      switch place {
      case .field: place = isQuote ? .quoted : byte == separator ? .field : .plain
      case .plain: place = isQuote ? .problem : byte == separator ? .field : .plain
      case .quoted: if isQuote { place = .quote }
      case .quote: place = isQuote ? .quoted : byte == separator ? .field : .problem
      case .problem, .end: break
      }
    }
    return place == .end && isLast ? bytes.count : nil
  }
}

extension Options {
  /// The field `separator`: one byte.
  func separator() throws -> UInt8? {
    guard let text = try string("separator") else { return nil }
    let reserved: [UInt8] = [UInt8(ascii: "\""), 0x0A, 0x0D]
    guard text.count == 1, let byte = text.bytes.first, !reserved.contains(byte) else {
      let got = text.onOneLine.truncated(to: FlowValue.logLimit)
      throw wrong(
        "separator", "a string of one byte, no quote and no line break, expected, got '\(got)'")
    }
    return byte
  }
}
