internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The values of a text or file with one JSON value a line: what `json.lines` returns.
final class JSONLines: TextIterator {
  private var text: TextPieces
  private let options: JSONReading

  init(_ host: ScriptHost, _ call: LuaCall) throws {
    let arguments = Arguments(host, call, "lines")
    text = try TextPieces(arguments, 1, function: "json.lines")
    options = try JSONReading(arguments, 2)
  }

  func close() { text.close() }

  /// The value of the next line that isn't empty; nil after the last one.
  func next(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    while true {
      switch text.nextLine() {
      case .end: return call.answer(.nil)
      case .incomplete:
        return try text.readMore(host, call) { [unowned host] call in
          try self.next(host, call)
        }
      case .line(let line, let number, let offset):
        if line.bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { continue }
        do {
          return call.answer(try host.vm.decodeJSON(line, options))
        } catch {
          guard var problem = error as? JSONTextError else {
            throw host.jsonError(call, error, in: "json.lines")
          }
          problem.line = number
          problem.offset += offset
          throw host.jsonError(call, problem, in: "json.lines", of: text.path)
        }
      }
    }
  }
}
