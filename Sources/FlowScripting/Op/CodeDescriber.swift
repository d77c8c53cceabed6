internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Code of a script that something of the engine holds.
protocol LuaCode: AnyObject {
  /// The values that make up the code, for forms of code that contain the holder.
  var codeValues: [LuaValue] { get throws }
}

extension ScriptHost {
  /// The form of a function, or of a table of code, with its bound arguments.
  func codeForm(of value: LuaReference, arguments: LuaReference? = nil) throws -> CodeForm {
    let bytes = try vm.codeForm(of: value, arguments: arguments, describer: CodeDescriber(self))
    return CodeForm(
      bytes, placeBytes: value.kind == .function ? vm.place(of: value) : nil,
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
final class CodeDescriber: LuaCodeDescriber {
  private let host: ScriptHost
  /// The modules met so far: each file is looked at once.
  private var modules: [ByteString: LuaModuleContent] = [:]

  init(_ host: ScriptHost) {
    self.host = host
  }

  func description(of object: AnyObject) throws -> LuaValue? {
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
    var values: [LuaValue] = [.string("op"), .string(op.nameBytes)]
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
      values += [.string(name), .reference(try host.table(of: declared))]
    }
    return values + (try host.codeValues(of: op.settings))
  }

  func isLibrary(_ name: ByteString) -> Bool { ModuleDigests.libraries.contains(name) }

  func content(ofModule name: ByteString) throws -> LuaModuleContent {
    if let known = modules[name] { return known }
    let content = try host.moduleDigests.content(of: name)
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
