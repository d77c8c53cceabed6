// The conversions of collections: they are copied, in both directions.

extension Array: LuaResult where Element: LuaValueConvertible {}
extension Dictionary: LuaResult where Key: LuaValueConvertible, Value: LuaValueConvertible {}

/// A list: a table with the keys 1 to n. No element may be nil.
extension Array: LuaValueConvertible where Element: LuaValueConvertible {
  public static var luaTypeName: String { "list" }

  public func luaValue(in vm: LuaVM) throws -> LuaValue {
    .reference(try vm.makeList(count: count) { try self[$0].luaValue(in: vm) })
  }

  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) throws -> [Element]? {
    guard case .reference(let reference) = try vm.shown(by: value),
      let count = vm.listCount(reference)
    else { return nil }
    var list: [Element] = []
    list.reserveCapacity(count)
    for index in 0..<count {
      do {
        list.append(try vm.convert(try vm.element(index + 1, of: reference)))
      } catch let error as LuaConversionError {
        throw error.within("[\(index + 1)]")
      }
    }
    return list
  }
}

/// A table with keys and values of these types.
extension Dictionary: LuaValueConvertible
where Key: LuaValueConvertible, Value: LuaValueConvertible {
  public static var luaTypeName: String { "table" }

  public func luaValue(in vm: LuaVM) throws -> LuaValue {
    let table = try vm.makeTable()
    for (key, value) in self {
      try vm.set(try value.luaValue(in: vm), at: try key.luaValue(in: vm), in: table)
    }
    return .reference(table)
  }

  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) throws -> [Key: Value]? {
    guard case .reference(let reference) = try vm.shown(by: value), reference.kind == .table
    else { return nil }
    var dictionary: [Key: Value] = [:]
    for (key, value) in try vm.pairs(of: reference) {
      let name: Key
      do { name = try vm.convert(key) } catch let error as LuaConversionError {
        throw error.within("a key")
      }
      do {
        dictionary[name] = try vm.convert(value)
      } catch let error as LuaConversionError {
        throw error.within("[\(vm.shownKey(key))]")
      }
    }
    return dictionary
  }
}

extension LuaVM {
  /// A key for messages, in one line.
  fileprivate func shownKey(_ key: LuaValue) -> String {
    (try? render(key, limit: 40).description) ?? "?"
  }
}
