internal import FlowEngine
internal import LuaVM

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
    case .integer(let number): self = .shown(FlowValue.integer(number).logTextBytes)
    case .number(let number): self = .shown(FlowValue.number(number).logTextBytes)
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
