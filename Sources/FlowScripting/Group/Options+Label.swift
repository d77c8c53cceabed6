internal import FlowEngine
@_spi(Scripting) internal import LuaVM

extension Options {
  /// What makes the labels of a group's items: the key of a field of each, or a function.
  func label(_ name: ByteString) throws -> ((FlowValue) throws -> ByteString?)? {
    let host = arguments.host
    switch value(name) {
    case nil: return nil
    case .string(let key): return { try host.label(of: $0, key: key) }
    case .reference(let function) where function.kind == .function:
      return { try host.label(of: $0, by: function) }
    default: throw wrong(name, expected: "string or function")
    }
  }
}

extension ScriptHost {
  /// The field of a table, or the item itself when it is a text, number or boolean; nil when there is
  /// no such field, or when it is of another type.
  fileprivate func label(of item: FlowValue, key: ByteString) throws -> ByteString? {
    guard case .opaque = item else { return Self.label(item) }
    guard case .reference(let table) = try luaValue(item), table.kind == .table else { return nil }
    return Self.label(FlowValue(try vm.rawGet(.string(key), in: table)))
  }

  private static func label(_ value: FlowValue) -> ByteString? {
    switch value {
    case .null: nil
    case .opaque: value.isSecret ? value.logTextBytes : nil
    default: value.logTextBytes
    }
  }

  /// The result of a function that gets the item. A wait in it keeps the thread from other code.
  fileprivate func label(of item: FlowValue, by function: LuaReference) throws -> ByteString? {
    let results: [LuaValue]
    do {
      results = try vm.call(function, [try luaValue(item)], traceback: true)
    } catch {
      throw flowError(of: (error, "", ""), op: nil)
    }
    switch FlowValue(results.first ?? .nil) {
    case .null: return nil
    case .opaque(let value) where !FlowValue.opaque(value).isSecret:
      throw wrongLabel(results, function)
    case .boolean: throw wrongLabel(results, function)
    case let value: return value.logTextBytes
    }
  }

  private func wrongLabel(_ results: [LuaValue], _ function: LuaReference) -> FlowError {
    let place = vm.place(of: function).map { "\($0): " } ?? ""
    let got = kindName(of: results.first ?? .nil)
    return .usage(
      "\(place)bad result of the function 'label' of a dispatcher (string or nil expected, got \(got))"
    )
  }
}
