internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.json`: JSON to Lua values and back.
extension ScriptHost {
  /// Makes the module `flow.json`.
  func makeJSONModule() throws -> LuaReference {
    let lines = try defineIterator("json.lines", of: JSONLines.self)
    let module = try vm.makeTable(fields: [("null", try vm.makeJSONNull())])
    try vm.set(
      functions: [
        "decode": bind { host, call in try host.decodeJSON(call) },
        "encode": bind { host, call in try host.encodeJSON(call) },
        "array": bind { host, call in try host.markJSON(call, "array") },
        "object": bind { host, call in try host.markJSON(call, "object") },
        "read": bind { host, call in try host.readJSON(call) },
        "write": bind { host, call in try host.writeJSON(call) },
        "lines": bind { host, call in
          let made = try JSONLines(host, call)
          let value = try host.vm.value(of: made, lines)
          // The last one is closed when the loop ends, however it ends.
          return call.answer([value, .nil, .nil, value])
        },
      ], in: module)
    return module
  }

  private func decodeJSON(_ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(self, call, "decode")
    let options = try JSONReading(arguments, 2)
    do {
      if let answer = try call.decodeJSON(1, options) { return answer }
    } catch {
      throw jsonError(call, error, in: "json.decode")
    }
    throw arguments.wrong(1, expected: "string")
  }

  private func encodeJSON(_ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(self, call, "encode")
    let options = try JSONWriting(arguments, 2)
    if arguments.isNil(1) { throw arguments.wrong(1, expected: "value") }
    do {
      let (answer, secret) = try call.encodeJSON(1, options)
      return answer ?? call.answer(makeSecret(.bytes(secret)), types.secret)
    } catch let error as JSONValueError {
      throw arguments.wrong(1, error.message.description)
    } catch {
      throw jsonError(call, error, in: "json.encode")
    }
  }

  private func markJSON(_ call: LuaCall, _ function: String) throws -> LuaAnswer {
    let arguments = Arguments(self, call, function)
    let isArray = function == "array"
    if call.count == 0 {
      return call.answer(.reference(try vm.makeJSONTable(isArray: isArray)))
    }
    guard call.kind(1) == .table else { throw arguments.wrong(1, expected: "table") }
    if call.jsonMark(1) == .other {
      throw arguments.wrong(1, "table without a metatable expected, got \(arguments.got(1))")
    }
    try call.markJSON(1, isArray: isArray)
    return call.answer(argument: 1)
  }

  private func readJSON(_ call: LuaCall) throws -> LuaAnswer {
    try checkAllowed(.files, call, "json.read")
    let arguments = Arguments(self, call, "read")
    let path = try arguments.string(1)
    let options = try JSONReading(arguments, 2)
    let memory = loop.memory?.beginCollecting()
    return try offload(call, in: memory) { cancellation throws(SystemError) in
      try Files.read(path, in: memory, cancellation)
    } answer: { [unowned self] call, text in
      do {
        return call.answer(try vm.decodeJSON(text, options))
      } catch {
        throw jsonError(call, error, in: "json.read", of: path)
      }
    }
  }

  private func writeJSON(_ call: LuaCall) throws -> LuaAnswer {
    try check(.files, call, "json.write")
    let arguments = Arguments(self, call, "write")
    let path = try arguments.string(1)
    let options = try JSONWriting(arguments, 3)
    if arguments.isNil(2) { throw arguments.wrong(2, expected: "value") }
    let text: ByteString
    do {
      text = try call.textOfJSON(2, options)
    } catch let error as JSONValueError {
      throw arguments.wrong(2, error.message.description)
    } catch {
      throw jsonError(call, error, in: "json.write")
    }
    return try offload(call) { cancellation throws(SystemError) in
      try Files.write(text + "\n", to: path, cancellation)
    } answer: { call, _ in
      call.answer()
    }
  }

  /// The error of a function for a text that isn't JSON, which may be that of a file. One of Lua, whose
  /// memory or stack is full, gets the names of place and function.
  func jsonError(
    _ call: LuaCall, _ error: any Error, in function: String, of path: ByteString? = nil
  ) -> any Error {
    if let error = error as? JSONTextError {
      return textError(
        call, path, error.message, code: "json",
        [("line", error.line), ("column", error.column), ("offset", error.offset)])
    }
    guard let error = error as? LuaError else { return error }
    return LuaError(error.code, "\(call.position)\(function): \(error.messageBytes)")
  }

  /// An error of kind `error` about a text, with numbers that say where in it.
  func textError(
    _ call: LuaCall, _ path: ByteString?, _ message: String, code: ByteString,
    _ numbers: [(ByteString, Int)]
  ) -> any Error {
    let place = path.map { "'\($0)': " } ?? ""
    let text = loop.secrets.redacted("\(call.position)\(place)\(message)")
    let fields = numbers.map { ($0.0, LuaValue.integer(Int64($0.1))) }
    do {
      let table = try makeError(
        FlowError(.error, text, traceback: vm.tracebackBytes(level: 1)),
        fields: [("code", .string(code))] + fields)
      return LuaError(value: .reference(table), message: text)
    } catch {
      return error
    }
  }
}
