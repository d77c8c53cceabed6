internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.json`: JSON to Lua values and back.
struct JSONBindings {
  let host: ScriptHost

  /// Makes the module `flow.json`.
  func makeModule() throws -> LuaReference {
    let lines = try JSONLines.defineType("json.lines", host)
    let module = try host.vm.makeTable(fields: [("null", try host.vm.makeJSONNull())])
    try host.vm.set(
      functions: [
        "decode": host.bind { host, call in try Self(host: host).decode(call) },
        "encode": host.bind { host, call in try Self(host: host).encode(call) },
        "array": host.bind { host, call in try Self(host: host).mark(call, "array") },
        "object": host.bind { host, call in try Self(host: host).mark(call, "object") },
        "read": host.bind { host, call in try Self(host: host).read(call) },
        "write": host.bind { host, call in try Self(host: host).write(call) },
        "lines": host.bind { host, call in
          let made = try JSONLines(host, call)
          let value = try host.vm.value(of: made, lines)
          // The last one is closed when the loop ends, however it ends.
          return call.answer([value, .nil, .nil, value])
        },
      ], in: module)
    return module
  }

  private func decode(_ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(host, call, "decode")
    let options = try JSONReading(arguments, 2)
    do {
      if let answer = try call.decodeJSON(1, options) { return answer }
    } catch {
      throw textError(call, error, in: "json.decode")
    }
    throw arguments.wrong(1, expected: "string")
  }

  private func encode(_ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(host, call, "encode")
    let options = try JSONWriting(arguments, 2)
    if arguments.isNil(1) { throw arguments.wrong(1, expected: "value") }
    do {
      let (answer, secret) = try call.encodeJSON(1, options)
      return answer ?? call.answer(host.makeSecret(.bytes(secret)), host.types.secret)
    } catch let error as JSONValueError {
      throw arguments.wrong(1, error.message)
    } catch {
      throw textError(call, error, in: "json.encode")
    }
  }

  private func mark(_ call: LuaCall, _ function: String) throws -> LuaAnswer {
    let arguments = Arguments(host, call, function)
    let isArray = function == "array"
    if call.count == 0 {
      return call.answer(.reference(try host.vm.makeJSONTable(isArray: isArray)))
    }
    guard call.kind(1) == .table else { throw arguments.wrong(1, expected: "table") }
    if call.jsonMark(1) == .other {
      throw arguments.wrong(1, "table without a metatable expected, got \(arguments.got(1))")
    }
    try call.markJSON(1, isArray: isArray)
    return call.answer(argument: 1)
  }

  private func read(_ call: LuaCall) throws -> LuaAnswer {
    try host.checkAllowed(.files, call, "json.read")
    let arguments = Arguments(host, call, "read")
    let path = try arguments.path(1)
    let options = try JSONReading(arguments, 2)
    let memory = host.loop.memory?.beginCollecting()
    return try host.offload(call, in: memory) { cancellation throws(SystemError) in
      try Files.read(path, in: memory, cancellation)
    } answer: { [unowned host] call, text in
      do {
        return call.answer(try host.vm.decodeJSON(text, options))
      } catch {
        throw Self(host: host).textError(call, error, in: "json.read", of: path)
      }
    }
  }

  private func write(_ call: LuaCall) throws -> LuaAnswer {
    try host.check(.files, call, "json.write")
    let arguments = Arguments(host, call, "write")
    let path = try arguments.path(1)
    let options = try JSONWriting(arguments, 3)
    if arguments.isNil(2) { throw arguments.wrong(2, expected: "value") }
    let text: ByteString
    do {
      text = try call.textOfJSON(2, options)
    } catch let error as JSONValueError {
      throw arguments.wrong(2, error.message)
    } catch {
      throw textError(call, error, in: "json.write")
    }
    return try host.offload(call) { cancellation throws(SystemError) in
      try Files.write(text + "\n", to: path, cancellation)
    } answer: { call, _ in
      call.answer()
    }
  }

  /// The error of a function for a text that isn't JSON, which may come from a file. One of Lua, whose
  /// memory or stack is full, gets the names of place and function.
  func textError(
    _ call: LuaCall, _ error: any Error, in function: String, of path: ByteString? = nil
  ) -> any Error {
    if let error = error as? JSONTextError {
      return host.textError(
        call, path, error.message, code: "json",
        [("line", error.line), ("column", error.column), ("offset", error.offset)])
    }
    guard let error = error as? LuaError else { return error }
    return LuaError(error.code, "\(call.position)\(function): \(error.message)")
  }
}

/// The values of a text or file with one JSON value a line: what `json.lines` returns.
final class JSONLines: TextIterator {
  private var text: TextPieces
  private let options: JSONReading
  /// The types of fields.
  private var types: [(name: ByteString, type: FlowValueType)] = []
  private(set) var onError: LuaReference?
  /// Whether the next bytes are those of a line with too many, which was reported.
  private var isInExcess = false

  init(_ host: ScriptHost, _ call: LuaCall) throws {
    let arguments = Arguments(host, call, "lines")
    text = try TextPieces(arguments, 1, function: "json.lines")
    if arguments.isNil(2) {
      options = JSONReading()
    } else {
      let fields = try arguments.options(
        2, known: JSONReading.fields + ["max_bytes", "types", "on_error"])
      types = try Self.types(fields)
      onError = try fields.function("on_error")
      options = try JSONReading(fields)
      text.maxBytes = try fields.count("max_bytes") ?? text.maxBytes
    }
  }

  func close() { text.close() }

  /// `{ n = "integer", tags = "string[]?" }`.
  private static func types(_ fields: Options) throws -> [(name: ByteString, type: FlowValueType)] {
    guard let table = try fields.table("types") else { return [] }
    let host = fields.arguments.host
    return try host.vm.pairs(of: table).map { name, value in
      guard case .string(let name) = name, case .string(let text) = value else {
        throw fields.wrong("types", expected: "table of strings")
      }
      let type = try host.type(spelled: text) {
        fields.arguments.wrong(fields.index, "field 'types': \($0)")
      }
      return (name, type)
    }.sorted { $0.name < $1.name }
  }

  /// The first field of a value that has another type.
  private func mismatch(_ value: LuaValue, _ host: ScriptHost) throws -> ByteString? {
    if types.isEmpty { return nil }
    guard case .reference(let table) = value, table.kind == .table else {
      return "expected an object"
    }
    for (name, type) in types {
      let field = try host.vm.rawGet(.string(name), in: table)
      if let expected = type.mismatch(FlowValue(field)) {
        return "field '\(name)': \(expected) expected, got \(host.kindName(of: field))"
      }
    }
    return nil
  }

  /// The value of the next line that isn't empty; nil after the last one.
  func next(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    while true {
      switch text.nextLine() {
      case .end: return call.answer(.nil)
      case .incomplete:
        if !isInExcess, let problem = text.excess(text.rest.count) {
          isInExcess = true
          try reportExcess(problem, text: text.rest, line: text.line + 1, host, call)
        }
        if isInExcess { text.useAll() }
        return try text.readMore(host, call) { [unowned host] call in
          try self.next(host, call)
        }
      case .line(let line, let number, let offset):
        if isInExcess {
          isInExcess = false
          continue
        }
        if let problem = text.excess(line.count) {
          try reportExcess(problem, text: line.bytes[...], line: number, host, call)
          continue
        }
        if line.bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { continue }
        do {
          let value = try host.vm.decodeJSON(line, options)
          guard let problem = try mismatch(value, host) else { return call.answer(value) }
          try report(
            host.textError(
              call, text.path, "\(problem) at line \(number)", code: "json", [("line", number)]),
            text: line, host)
        } catch var problem as JSONTextError {
          problem.line = number
          problem.offset += offset
          try report(
            JSONBindings(host: host).textError(call, problem, in: "json.lines", of: text.path),
            text: line, host)
        }
      }
    }
  }

  private func reportExcess(
    _ problem: ByteString, text bytes: ArraySlice<UInt8>, line: Int, _ host: ScriptHost,
    _ call: LuaCall
  ) throws {
    let error = host.textError(
      call, text.path, "\(problem) at line \(line)", code: "json", [("line", line)])
    try reportExcess(error, text: bytes, host)
  }
}

extension JSONReading {
  /// The options of `json.decode`, `json.read` and `json.lines`.
  static let fields: [String] = ["null", "max_depth", "big", "strict"]

  /// Reads an argument; the defaults if it is absent.
  init(_ arguments: Arguments, _ index: Int) throws {
    self.init()
    if arguments.isNil(index) { return }
    try self.init(arguments.options(index, known: Self.fields))
  }

  init(_ options: Options) throws {
    self.init()
    keepsNull = try options.choice("null", ["drop", "keep"]) == "keep"
    keepsBig = try options.choice("big", ["number", "string"]) == "string"
    isStrict = try options.boolean("strict") ?? false
    maxDepth = try options.depth() ?? maxDepth
  }
}

extension JSONWriting {
  private static let fields: [String] = [
    "empty", "invalid", "sort", "indent", "ascii", "secrets", "max_depth",
  ]

  /// Reads the options of `json.encode` and `json.write`; the defaults if they are absent.
  init(_ arguments: Arguments, _ index: Int) throws {
    self.init()
    if arguments.isNil(index) { return }
    let options = try arguments.options(index, known: Self.fields)
    emptyIsArray = try options.choice("empty", ["object", "array"]) == "array"
    replacesInvalid = try options.choice("invalid", ["error", "replace"]) == "replace"
    sortsKeys = try options.boolean("sort") ?? true
    let isIndent = { (number: Double) in number >= 0 && number <= 16 && number == number.rounded() }
    if let spaces = try options.number("indent", "an integer from 0 to 16", isIndent) {
      indent = Int(spaces)
    }
    isASCII = try options.boolean("ascii") ?? false
    showsSecrets = try options.boolean("secrets") ?? false
    maxDepth = try options.depth() ?? maxDepth
  }
}

extension Options {
  /// A field that is one of some strings.
  func choice(_ name: ByteString, _ known: [ByteString]) throws -> ByteString? {
    guard let text = try string(name) else { return nil }
    guard known.contains(text) else {
      let names = known.map { "'\($0)'" }.joined(separator: " or ")
      throw arguments.wrong(index, "field '\(name)': \(names) expected, got '\(text)'")
    }
    return text
  }

  /// The limit of the levels: Lua's stack has room for so many.
  fileprivate func depth() throws -> Int? {
    let isDepth = { (number: Double) in
      number >= 1 && number <= 100_000 && number == number.rounded()
    }
    return try number("max_depth", "an integer from 1 to 100000", isDepth).map { Int($0) }
  }
}
