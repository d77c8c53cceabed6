internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.csv`: CSV to tables and back.
extension ScriptHost {
  /// Makes the module `flow.csv`.
  func makeCSVModule() throws -> LuaReference {
    let rows = try defineIterator("csv.rows", of: CSVRows.self)
    let module = try vm.makeTable()
    try vm.set(
      functions: [
        "rows": bind { host, call in
          let value = try host.vm.value(of: try CSVRows(host, call), rows)
          // The last one is closed when the loop ends, however it ends.
          return call.answer([value, .nil, .nil, value])
        },
        "encode": bind { host, call in try host.encodeCSV(call) },
      ], in: module)
    return module
  }

  private func encodeCSV(_ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(self, call, "encode")
    _ = try arguments.table(1)
    var columns: LuaReference?
    var separator = UInt8(ascii: ",")
    var hasHeader = true
    var endsWithCRLF = false
    if !arguments.isNil(2) {
      let options = try arguments.options(2, known: ["columns", "header", "separator", "newline"])
      if let list = try options.table("columns") {
        guard let names = try strings(in: .reference(list)), !names.isEmpty else {
          throw options.wrong("columns", expected: "list of names")
        }
        columns = try vm.makeList(count: names.count) { .string(names[$0]) }
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
      throw arguments.wrong(1, error.message.description)
    }
  }

  /// The error of a text that isn't CSV as it is expected.
  func csvError(
    _ call: LuaCall, _ path: ByteString?, _ problem: String, line: Int, column: Int?
  ) -> any Error {
    let place = column.map { "line \(line), column \($0)" } ?? "line \(line)"
    var numbers: [(ByteString, Int)] = [("line", line)]
    if let column { numbers.append(("column", column)) }
    return textError(call, path, "\(problem) at \(place)", code: "csv", numbers)
  }
}
