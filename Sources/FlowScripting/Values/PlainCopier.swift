internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Copies a Lua value into one that isn't bound to a state. Cycles, sharing, and marks and nulls of JSON
/// are kept; functions, userdata and coroutines can't be copied.
///
/// A string is copied for each place that refers to it, and a table for each value that contains it. So all copies
/// together take no more than the memory limit of the state.
struct PlainCopier {
  private let vm: LuaVM
  /// The bytes that may still be copied.
  private var room: Int
  private var indices: [UInt: Int] = [:]
  /// The tables found so far, in the order of their indices.
  private var open: [LuaReference] = []
  /// Whether a table has a metatable, which the copy hasn't.
  private(set) var hasMetatables = false

  init(vm: LuaVM) {
    self.vm = vm
    room = vm.memoryLimit ?? .max
  }

  /// A copy; nil if a part of the value can't be copied.
  ///
  /// - Throws: A `LuaError` when the copies exceed the memory limit, or the state is closed.
  mutating func copy(_ value: LuaValue) throws -> PlainValue? {
    (indices, open) = ([:], [])
    guard let root = atom(value) else { return nil }
    var tables: [PlainValue.Table] = []
    // Tables are copied in the order in which they were found, so no depth of nesting recurses.
    while tables.count < open.count {
      guard let table = try copyTable(open[tables.count]) else { return nil }
      tables.append(table)
    }
    return PlainValue(root, tables: tables)
  }

  private mutating func copyTable(_ reference: LuaReference) throws -> PlainValue.Table? {
    let pairs = try vm.pairs(of: reference, room: &room)
    var listed: [Int64: PlainValue.Atom] = [:]
    let mark = vm.jsonMark(of: reference)
    if case .other = mark { hasMetatables = true }
    var table = PlainValue.Table(mark: PlainValue.JSONMark(mark))
    for (key, value) in pairs {
      guard let key = atom(key), let value = atom(value) else { return nil }
      if case .integer(let index) = key, index >= 1, index <= Int64(pairs.count) {
        listed[index] = value
      } else {
        table.entries.append(PlainValue.Entry(key: key, value: value))
      }
    }
    var next: Int64 = 1
    while let value = listed.removeValue(forKey: next) {
      table.list.append(value)
      next += 1
    }
    // Elements after a hole.
    for (index, value) in listed.sorted(by: { $0.key < $1.key }) {
      table.entries.append(PlainValue.Entry(key: .integer(index), value: value))
    }
    return table
  }

  private mutating func atom(_ value: LuaValue) -> PlainValue.Atom? {
    switch value {
    case .nil: return .null
    case .boolean(let flag): return .boolean(flag)
    case .integer(let integer): return .integer(integer)
    case .number(let number): return .number(number)
    case .string(let string): return .bytes(string)
    case .reference(let reference):
      if vm.isJSONNull(reference) { return .jsonNull }
      guard reference.kind == .table else { return nil }
      let identity = vm.identity(of: reference)
      if let index = indices[identity] { return .table(index) }
      let index = open.count
      indices[identity] = index
      open.append(reference)
      return .table(index)
    }
  }
}

extension PlainValue.JSONMark {
  /// The mark of a table in Lua; nil when it has none.
  init?(_ mark: JSONMark) {
    switch mark {
    case .array: self = .array
    case .object: self = .object
    case .none, .other: return nil
    }
  }
}
