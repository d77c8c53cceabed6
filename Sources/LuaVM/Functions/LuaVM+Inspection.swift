internal import CFlowLua
internal import CLua

/// Looking at values without running a script's code.
extension LuaVM {
  /// A value's metatable, regardless of its `__metatable`; nil without one.
  package func metatable(of value: LuaValue) -> LuaReference? {
    guard (try? enter()) != nil, lua_checkstack(running, 4) != 0 else { return nil }
    let lua = running
    let status = withRawValues(of: self, [value]) { flowlua_push_protected(state, $0) }
    guard status == LUA_OK else {
      flowlua_discard_error(state, status)
      return nil
    }
    defer { flowlua_pop(lua, 1) }
    guard lua_getmetatable(lua, -1) != 0 else { return nil }
    return try? popReference(lua, .table)
  }

  /// The table of global variables.
  package func globals() throws -> LuaReference {
    try enter()
    guard lua_checkstack(running, 2) != 0 else { throw LuaError(.overflow, "stack overflow") }
    lua_rawgeti(running, flowlua_registry_index(), lua_Integer(LUA_RIDX_GLOBALS))
    return try popReference(running, .table)
  }

  /// The keys of a table that are strings with this prefix; at most `limit`, in no order.
  package func stringKeys(
    of table: LuaReference, startingWith start: [UInt8], limit: Int
  ) throws -> [ByteString] {
    let walk = KeyWalk(start, limit)
    try walkPairs(of: table, walk)
    return walk.keys
  }

  /// The first entries of a table in order: the list from 1 on, then the other keys, numbers before
  /// strings before the rest.
  ///
  /// - Parameters:
  ///   - table: The table; its metatable isn't used.
  ///   - limit: The maximum number of entries.
  /// - Returns: The entries, and whether there are more.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  package func entries(
    of table: LuaReference, limit: Int
  ) throws -> (
    list: [LuaValue], keyed: [(key: LuaValue, value: LuaValue)], isCut: Bool
  ) {
    var list: [LuaValue] = []
    while true {
      let value = try element(list.count + 1, of: table)
      if value.isNil { break }
      if list.count == limit { return (list, [], true) }
      list.append(value)
    }
    let walk = EntryWalk(self, listed: list.count, limit: limit - list.count)
    try walkPairs(of: table, walk)
    var keyed: [(key: LuaValue, value: LuaValue)] = []
    for key in walk.keys { keyed.append((key, try rawGet(key, in: table))) }
    return (list, keyed, walk.isCut)
  }

  /// The number of pairs of a table.
  package func pairCount(of table: LuaReference) -> Int {
    let walk = CountWalk()
    guard (try? walkPairs(of: table, walk)) != nil else { return 0 }
    return walk.count
  }

  private func walkPairs(of table: LuaReference, _ walk: TableWalk) throws {
    try enter()
    checkHome(table)
    guard table.kind == .table else { return }
    try walk.run(on: self) { flowlua_each_pair(state, table.id, $0, $1) }
  }
}

private final class CountWalk: TableWalk {
  private(set) var count = 0

  override func visit(_ lua: OpaquePointer) -> Bool {
    count += 1
    return true
  }
}

private final class KeyWalk: TableWalk {
  private(set) var keys: [ByteString] = []
  private let start: [UInt8]
  private let limit: Int

  init(_ start: [UInt8], _ limit: Int) {
    self.start = start
    self.limit = limit
  }

  override func visit(_ lua: OpaquePointer) -> Bool {
    var count = 0
    guard let bytes = flowlua_bytes(lua, -2, &count) else { return true }
    let key = UnsafeRawBufferPointer(start: bytes, count: count)
    if key.starts(with: start) { keys.append(ByteString(key)) }
    return keys.count < limit
  }
}

/// Keeps the smallest keys, in order.
private final class EntryWalk: TableWalk {
  private(set) var keys: [LuaValue] = []
  private(set) var isCut = false
  private let vm: LuaVM
  private let listed: Int
  private let limit: Int

  init(_ vm: LuaVM, listed: Int, limit: Int) {
    self.vm = vm
    self.listed = listed
    self.limit = limit
  }

  override func visit(_ lua: OpaquePointer) throws -> Bool {
    let key = try vm.value(in: lua, at: -2)
    if case .integer(let index) = key, index >= 1, index <= Int64(listed) { return true }
    if keys.count >= limit {
      isCut = true
      guard let last = keys.last, Self.comesBefore(key, last) else { return true }
      keys.removeLast()
    }
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if Self.comesBefore(key, keys[middle]) { high = middle } else { low = middle + 1 }
    }
    keys.insert(key, at: low)
    return true
  }

  private static func comesBefore(_ a: LuaValue, _ b: LuaValue) -> Bool {
    switch (a, b) {
    case (.integer(let a), .integer(let b)): a < b
    case (.integer(let a), .number(let b)): Double(a) < b
    case (.number(let a), .integer(let b)): a < Double(b)
    case (.number(let a), .number(let b)): a < b
    case (.string(let a), .string(let b)): a.bytes.lexicographicallyPrecedes(b.bytes)
    case (.boolean(let a), .boolean(let b)): !a && b
    default: rank(a) < rank(b)
    }
  }

  private static func rank(_ value: LuaValue) -> Int32 {
    switch value {
    case .integer, .number: 0
    case .string: 1
    case .boolean: 2
    case .nil: 3
    case .reference(let reference): 4 + reference.kind.rawValue
    }
  }
}
