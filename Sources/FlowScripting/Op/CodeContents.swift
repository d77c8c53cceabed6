internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// An object of flowlua that code of a script may refer to, besides ops.
protocol CodeContent: AnyObject {
  /// The values that decide what code does with it. Throws when these aren't known: then the code can't be
  /// compared.
  func codeContent(_ host: ScriptHost) throws -> [LuaValue]
}

/// The error of code that refers to something of which nothing is known.
func unknownCodeContent(_ what: ByteString) -> LuaError {
  LuaError(.runtime, "it refers to \(what)")
}

// MARK: Blueprints

extension DispatcherBox: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    try host.codeValues(of: dispatcher.codeParts)
  }
}

extension StepPart: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    var values: [LuaValue] = [name.map { .string($0) } ?? .boolean(false), .boolean(isFinal)]
    switch run {
    case .op(let op)?: values.append(.reference(try host.reference(to: op)))
    case .function(let function)?: values.append(.reference(function))
    case nil: values.append(.boolean(false))
    }
    for handler in handlers { values.append(try host.vm.value(of: handler, host.types.handler)) }
    return values
  }
}

extension HandlerPart: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    let texts = [event, transition.kindName, transition.step]
    return texts.map { text in text.map { .string($0) } ?? .boolean(false) }
  }
}

/// Functions of policies.
extension ScriptRetryRule: CodeHolder, LuaCode {
  var codeValues: [LuaValue] {
    [when, delay].map { function in function.map { .reference($0) } ?? .boolean(false) }
  }
}

extension ScriptCacheKey: CodeHolder, LuaCode {
  var codeValues: [LuaValue] { function.codeValues }
}

// MARK: Tasks

extension AnyFlowTask: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    guard isConcluded else {
      throw unknownCodeContent("'\(title)', which hasn't ended")
    }
    var values: [LuaValue] = [.string(state.nameBytes)]
    if let error = try host.error(of: self) { values.append(try host.luaError(error)) }
    if let run = self as? Run {
      values += [.string(run.nameBytes), .reference(try host.dataView(of: run))]
    }
    let result = try host.luaResult(of: self)
    return values + [result.isNil ? .boolean(false) : result]
  }
}

extension FlowContext: CodeContent where Success == FlowValue {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] { [try host.value(of: task)] }
}

// MARK: Requests

extension ScriptClient: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    // A client's credentials stay hidden.
    func hidden(_ text: ByteString) throws -> LuaValue {
      try host.vm.value(of: SecretValue(.bytes(text)), host.types.secret)
    }
    var values: [LuaValue] = [client.baseBytes.map { .string($0) } ?? .boolean(false)]
    for header in client.headers.sorted(by: { $0.nameBytes < $1.nameBytes }) {
      values += [
        .string(header.nameBytes), .boolean(header.isSecret), try hidden(header.valueBytes),
      ]
    }
    switch client.authorization {
    case .bearer(let token)?: values += [.string("bearer"), try hidden(token)]
    case .basic(let user, let password)?:
      values += [.string("basic"), try hidden(user), try hidden(password)]
    case nil: values.append(.string("none"))
    }
    values += [
      .integer(Int64(client.maxConnections ?? 0)), .integer(Int64(client.rate?.count ?? 0)),
      .number(client.rate?.period.inSeconds ?? 0),
      .reference(try host.vm.makeTable(fields: defaults.all)),
    ]
    if let jar = client.cookies {
      values.append(try host.vm.value(of: jar, try host.httpTypes().jar))
    }
    return values
  }
}

extension ScriptClientFunction: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    [.string(ByteString(name)), try host.vm.value(of: client, try host.httpTypes().client)]
  }
}

extension HTTPResponse: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    if stream != nil { throw unknownCodeContent("a response that is streamed") }
    let lines = headersByBytes.flatMap { [LuaValue.string($0.name), .string($0.value)] }
    return [
      .integer(Int64(status)), .string(urlBytes), .string(body), .string(savedBytes ?? ""),
    ] + lines
  }
}

// MARK: Iterators

/// Of these nothing is known before they have been read.
let objectsWithoutCodeContent: [ObjectIdentifier: ByteString] = [
  ObjectIdentifier(HTTPBodyReader.self): "the body of a response",
  ObjectIdentifier(JSONLines.self): "an iterator of json.lines",
  ObjectIdentifier(CSVRows.self): "an iterator of csv.rows",
  ObjectIdentifier(ProgramLines.self): "the lines of a program",
  ObjectIdentifier(FileWatch.self): "a watch of files",
]
