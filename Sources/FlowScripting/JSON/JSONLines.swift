internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The values of a text or file with one JSON value a line: what `json.lines` returns.
final class JSONLines: TextIterator {
  private var text: TextPieces
  private let options: JSONReading
  private(set) var onError: LuaReference?

  init(_ host: ScriptHost, _ call: LuaCall) throws {
    let arguments = Arguments(host, call, "lines")
    text = try TextPieces(arguments, 1, function: "json.lines")
    if arguments.isNil(2) {
      options = JSONReading()
    } else {
      let fields = try arguments.options(2, known: JSONReading.fields + ["max_bytes", "on_error"])
      onError = try fields.function("on_error")
      options = try JSONReading(fields)
      text.maxBytes = try fields.count("max_bytes") ?? text.maxBytes
    }
  }

  func close() { text.close() }

  /// The value of the next line that isn't empty; nil after the last one.
  func next(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    while true {
      switch text.nextLine() {
      case .end: return call.answer(.nil)
      case .incomplete:
        return try text.readMore(host, call) { [unowned self] in
          tooLong($0, line: text.line + 1, host, call)
        } answer: { [unowned host] call in
          try self.next(host, call)
        }
      case .line(let line, let number, let offset):
        try text.check(line.count) { tooLong($0, line: number, host, call) }
        if line.bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { continue }
        do {
          return call.answer(try host.vm.decodeJSON(line, options))
        } catch {
          guard var problem = error as? JSONTextError else {
            throw host.jsonError(call, error, in: "json.lines")
          }
          problem.line = number
          problem.offset += offset
          try report(
            host.jsonError(call, problem, in: "json.lines", of: text.path), text: line, host)
        }
      }
    }
  }

  private func tooLong(
    _ problem: String, line: Int, _ host: ScriptHost, _ call: LuaCall
  ) -> any Error {
    host.textError(call, text.path, "\(problem) at line \(line)", code: "json", [("line", line)])
  }
}
