internal import FlowEngine
@_spi(Scripting) internal import LuaVM

extension ScriptHost {
  /// Lua's name of a value's basic type, or the `__name` of its metatable.
  func kindName(of value: LuaValue) -> String {
    switch value {
    case .integer, .number: return "number"
    default: return vm.typeNameBytes(of: value).description
    }
  }

  /// The type with a spelling; `wrong` makes the error.
  func type(spelled text: ByteString, wrong: (String) -> any Error) throws -> FlowValueType {
    if let known = typeCache[text] { return known }
    do throws(TypeSyntaxError) {
      let type = try FlowValueType.parse(text)
      // A script may generate any number of texts, of any length.
      if text.count >= LuaVM.largeText { return type }
      if typeCache.count >= ScriptHost.typeCacheLimit { typeCache = [:] }
      typeCache[text] = type
      return type
    } catch {
      throw wrong("\(error)")
    }
  }

  /// A type defined by a function `(value) -> boolean, reason?`.
  func type(tested function: LuaReference) -> FlowValueType {
    FlowValueType.predicate(name: "predicate", source: function) { value in
      do {
        let results = try self.vm.call(function, [try self.luaValue(value)])
        if let first = results.first, first.isTruthy { return nil }
        if results.count > 1, case .string(let reason) = results[1] { return reason }
        return "predicate"
      } catch {
        return "predicate, which failed: \(ByteString(describing: error))"
      }
    }
  }

  /// `needs` or `gives`: key -> type, in the order of the sorted keys.
  func declaration(
    _ table: LuaReference, wrong: (String) -> any Error
  ) throws -> [Declaration] {
    var result: [Declaration] = []
    for (key, value) in try vm.pairs(of: table) {
      guard case .string(let name) = key else {
        throw wrong("keys are strings, got a key of type \(vm.typeNameBytes(of: key))")
      }
      try checkMemory(forKey: name)
      switch value {
      case .string(let text):
        let type = try type(spelled: text) { wrong("type of '\(name)': \($0)") }
        result.append(Declaration(name, type))
      case .reference(let function) where function.kind == .function:
        result.append(Declaration(name, type(tested: function)))
      default:
        throw wrong(
          "type of '\(name)': string or function expected, got \(kindName(of: value))")
      }
    }
    return result
  }
}
