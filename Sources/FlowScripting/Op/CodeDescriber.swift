package import FlowEngine
internal import FlowHTTP
@_spi(Scripting) package import LuaVM

extension ScriptHost {
  /// The form of a function, or of a table of code, with its bound arguments.
  func codeForm(of value: LuaReference, arguments: LuaReference? = nil) throws -> CodeForm {
    let bytes = try vm.codeForm(of: value, arguments: arguments, describer: CodeDescriber(self))
    return CodeForm(
      bytes, place: value.kind == .function ? vm.place(of: value) : nil,
      details: { [self] in
        CodeDetail.list(
          try vm.codeParts(of: value, arguments: arguments, describer: CodeDescriber(self)))
      })
  }

  /// The parts of something of the engine, as values.
  func codeValues(of parts: [CodePart]) throws -> [LuaValue] {
    var values: [LuaValue] = []
    for part in parts {
      switch part {
      case .text(let text): values += [.string("text"), .string(text)]
      case .code(let op as Op): values += [.string("op"), .reference(try reference(to: op))]
      case .code(let holder as any LuaCode):
        let code = try vm.makeTable(values: try holder.codeValues)
        values += [.string("code"), .reference(code)]
      case .code(let holder):
        values += [.string("code"), .string(ByteString(try holder.codeForm()?.bytes ?? []))]
      case .value(.null): values.append(.boolean(false))
      case .value(let value): values += [.string("value"), try luaValue(value)]
      }
    }
    return values
  }

  /// The SHA-256 of the form of an op's code, in hexadecimal digits; nil when it has none.
  func codeDigest(of op: Op) throws -> ByteString? {
    guard let form = try op.codeForm() else { return nil }
    return try FileHash.sha256.digest(of: ByteString(form.bytes), Cancellation())
  }

  /// A reference to the userdata of an op.
  func reference(to op: Op) throws -> LuaReference {
    guard case .reference(let reference) = try value(of: op) else {
      throw LuaError(.runtime, "an op has no object")
    }
    return reference
  }
}

/// Describes the objects of flowlua and the modules in one form of code.
package final class CodeDescriber: LuaCodeDescriber {
  private let host: ScriptHost
  /// The modules met so far: each file is looked at once.
  private var modules: [ByteString: LuaModuleContent] = [:]

  package init(_ host: ScriptHost) {
    self.host = host
  }

  package func description(of object: AnyObject) throws -> LuaValue? {
    if let op = object as? Op {
      return .reference(try host.vm.makeTable(values: try values(of: op)))
    }
    if let name = objectsWithoutCodeContent[ObjectIdentifier(type(of: object))] {
      throw unknownCodeContent(name)
    }
    guard let content = object as? any CodeContent else { return nil }
    return .reference(try host.vm.makeTable(values: try content.codeContent(host)))
  }

  private func values(of op: Op) throws -> [LuaValue] {
    var values: [LuaValue] = [.string("op"), .string(op.name)]
    if let code = op.body as? any LuaCode {
      values += try code.codeValues
    } else if let form = try op.body?.codeForm() {
      values.append(.string(ByteString(form.bytes)))
    } else if let code = op.madeBy as? any LuaCode {
      values += try code.codeValues
    } else {
      values += try host.codeValues(of: op.codeParts)
    }
    // A flow's own: those of its only step, however deep, belong to that.
    let flow = op as? Flow
    for (name, declared) in [
      ("needs", flow?.ownNeeds ?? op.needs), ("gives", flow?.ownGives ?? op.gives),
    ] as [(ByteString, [Declaration])] where !declared.isEmpty {
      values += [.string(name), .reference(try host.vm.table(of: declared))]
    }
    return values + (try host.codeValues(of: op.settings))
  }

  package func isLibrary(_ name: ByteString) -> Bool { ModuleDigests.libraries.contains(name) }

  package func content(ofModule name: ByteString) throws -> LuaModuleContent {
    if let known = modules[name] { return known }
    let content = try ModuleDigests.of(host).content(of: name)
    modules[name] = content
    return content
  }
}

/// The call of an op class by which an op was made, as the op's code: the class and its arguments. Tables are
/// copied, because a script may change them afterwards.
final class OpClassCall: CodeHolder, LuaCode {
  private enum Argument {
    case value(LuaValue)
    case table(EncodedBuffer)
  }

  private let host: ScriptHost
  private let name: ByteString
  private var arguments: [Argument] = []

  init(_ host: ScriptHost, _ name: ByteString, _ call: LuaCall) throws {
    self.host = host
    self.name = name
    for index in stride(from: 2, through: call.count, by: 1) {
      let value = try call.value(index)
      if case .reference(let table) = value, table.kind == .table {
        let buffer = EncodedBuffer()
        do {
          try host.vm.encode(value, into: buffer)
          arguments.append(.table(buffer))
          continue
        } catch is EncodeError {
          // With functions in it: it counts as it is when the form is made.
        }
      }
      arguments.append(.value(value))
    }
  }

  var codeValues: [LuaValue] {
    get throws {
      try [.string("class"), .string(name)]
        + arguments.map { argument in
          switch argument {
          case .value(let value): value
          case .table(let buffer): try host.vm.decode(buffer).value
          }
        }
    }
  }

  func codeForm() throws -> CodeForm? {
    try host.codeForm(of: try host.vm.makeTable(values: codeValues))
  }
}

extension CodeDetail {
  /// The parts of a form, in words.
  ///
  /// An upvalue is named by itself, whatever function it is of, as people know it by that name; several of one name
  /// differ by their order.
  static func list(_ parts: [LuaCodePart]) -> [CodeDetail] {
    var details: [CodeDetail] = []
    /// The ways to the tables, functions and objects; none to one that has no name.
    var ways: [Int: CodeWay] = [:]
    for part in parts {
      guard let way = CodeWay(to: part, from: part.owner.flatMap { ways[$0] }) else { continue }
      if let number = part.number { ways[number] = way.inside(part.value) }
      guard var content = Content(part.value) else { continue }
      if case .within = way, case .shown(let text) = content { content = .hidden(text.bytes) }
      details.append(CodeDetail(name: way.words(for: part.value), content: content))
    }
    return details
  }
}

extension CodeDetail.Content {
  /// nil for what has parts of its own, or had them before.
  fileprivate init?(_ value: LuaCodePart.Value) {
    switch value {
    case .nil: self = .shown("nil")
    case .boolean(let flag): self = .shown(flag ? "true" : "false")
    case .integer(let number): self = .shown(FlowValue.integer(number).logText)
    case .number(let number): self = .shown(FlowValue.number(number).logText)
    case .function(let bytes), .module(_, let bytes), .bytes(let bytes): self = .hidden(bytes)
    case .table, .object, .known: return nil
    }
  }
}

/// How a part of code is reached, as far as it has a name.
private enum CodeWay {
  case root
  case arguments
  case named(_ noun: ByteString, ByteString)
  /// A part of the description of an object of the host, which has this name.
  case within(ByteString, ByteString)

  init?(to part: LuaCodePart, from owner: CodeWay?) {
    switch (part.way, owner) {
    case (.root, _): self = .root
    case (.arguments, _): self = .arguments
    case (.local, _):
      // Code without debug information has none.
      if part.name.bytes.isEmpty || part.name == "(no name)" { return nil }
      self = .named("local", part.name)
    case (.global, _): self = .named("global", part.name)
    case (.module, _): self = .named("module", part.name)
    case (.content, let owner?): self = owner
    // The parts of an op without a function of its own have no names.
    case (.field, .root?):
      if part.number == nil { return nil }
      self = .root
    case (.field, .arguments?): self = .named("argument", part.name)
    case (.field, .named(let noun, let name)?): self = .named(noun, name + part.name)
    case (.field, .within?): self = owner ?? .root
    case (.field, nil), (.content, nil): return nil
    }
  }

  /// The way to what a value has in it.
  func inside(_ value: LuaCodePart.Value) -> CodeWay {
    if case .object = value, case .named(let noun, let name) = self { return .within(noun, name) }
    return self
  }

  func words(for value: LuaCodePart.Value) -> ByteString {
    switch (self, value) {
    case (_, .module(let name, _)): "module '\(name)'"
    case (.root, _): ""
    case (.arguments, _): "the arguments"
    case (.named(_, let name), .function), (.within(_, let name), .function): "function '\(name)'"
    case (.named(let noun, let name), _), (.within(let noun, let name), _): "\(noun) '\(name)'"
    }
  }
}

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

/// A limit isn't a part of the code that uses it: it decides when that is executed, not how.
extension Limit: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] { [.string(name)] }
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
    var values: [LuaValue] = [.string(state.name)]
    if let error = try host.error(of: self) { values.append(try host.luaError(error)) }
    if let run = self as? Run {
      values += [.string(run.name), .reference(try host.dataView(of: run))]
    }
    let result = try host.luaResult(of: self)
    return values + [result.isNil ? .boolean(false) : result]
  }
}

extension FlowPromise: CodeContent where Success == FlowValue {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] { [try host.value(of: task)] }
}

// MARK: Requests

extension ScriptClient: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    // A client's credentials stay hidden.
    func hidden(_ text: ByteString) throws -> LuaValue {
      try host.vm.value(of: SecretValue(.bytes(text)), host.types.secret)
    }
    var values: [LuaValue] = [client.base.map { .string($0) } ?? .boolean(false)]
    for header in client.headers.sorted(by: { $0.name < $1.name }) {
      values += [
        .string(header.name), .boolean(header.isSecret), try hidden(header.value),
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
      values.append(try host.vm.value(of: jar, try HTTPTypes.of(host).jar))
    }
    return values
  }
}

extension ScriptClientFunction: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    [.string(ByteString(name)), try host.vm.value(of: client, try HTTPTypes.of(host).client)]
  }
}

extension FlowHTTPResponse: CodeContent {
  func codeContent(_ host: ScriptHost) throws -> [LuaValue] {
    if stream != nil { throw unknownCodeContent("a response that is streamed") }
    let lines = headers.flatMap { [LuaValue.string($0.name), .string($0.value)] }
    return [
      .integer(Int64(status)), .string(url), .string(body), .string(saved ?? ""),
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
