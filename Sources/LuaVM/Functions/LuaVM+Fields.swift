internal import CFlowLua
internal import CLua

extension LuaVM {
  /// Some fields of a table, without metamethods, read at once.
  ///
  /// - Parameters:
  ///   - names: The names, separated by NUL.
  ///   - table: The table.
  /// - Returns: A value for each name, in their order.
  /// - Throws: A `LuaError` when memory runs out, the stack is full or the state is closed.
  package func fields(_ names: StaticString, of table: LuaReference) throws -> [LuaValue] {
    try enter()
    checkHome(table)
    let walk = FieldWalk(vm: self)
    try walk.run(on: self) {
      flowlua_each_field(
        state, table.id, UnsafeRawPointer(names.utf8Start).assumingMemoryBound(to: CChar.self),
        names.utf8CodeUnitCount, $0, $1)
    }
    return walk.values
  }

  /// A field of a value's metatable; nil without metatable.
  func metafield(_ name: StaticString, of reference: LuaReference) throws -> LuaValue {
    try enter()
    let lua = running
    try check(flowlua_make_room(state, lua, 4))
    flowlua_push_reference(state, lua, reference.id)
    guard lua_getmetatable(lua, -1) != 0 else {
      flowlua_pop(lua, 1)
      return .nil
    }
    let metatable = try popReference(lua, .table)
    flowlua_pop(lua, 1)
    return try fields(name, of: metatable).first ?? .nil
  }
}

/// Collects the values of fields.
private final class FieldWalk: TableWalk {
  private let vm: LuaVM
  private(set) var values: [LuaValue] = []

  init(vm: LuaVM) {
    self.vm = vm
    values.reserveCapacity(8)
  }

  override func visit(_ lua: OpaquePointer) throws -> Bool {
    values.append(try vm.value(in: lua, at: -1))
    return true
  }
}

/// Values with names, in the order in which they were written, such as the methods of a type.
///
/// Written like a dictionary literal. Names aren't looked up, and the first dictionary of a type
/// costs a program as much as starting a Lua state.
// Inlinable: as generic code in another module this would cost more than a dictionary.
package struct LuaFields<Value>: ExpressibleByDictionaryLiteral {
  // Tuples without labels, like the literal's: with labels they would be another type of array, and each such
  // type takes time at the start of a program.

  /// The names and values; a later field replaces an earlier one of the same name.
  package var list: [(String, Value)]

  /// Fields in the order of a list.
  @inlinable
  package init(_ list: [(String, Value)]) {
    self.list = list
  }

  @inlinable
  package init(dictionaryLiteral fields: (String, Value)...) {
    list = fields
  }

  /// Whether there are no fields.
  @inlinable
  package var isEmpty: Bool { list.isEmpty }

  /// The names, in order.
  package var names: [String] { list.map(\.0) }

  /// Fields with these names and other values.
  @inlinable
  package func mapValues<Other>(_ transform: (Value) -> Other) -> LuaFields<Other> {
    LuaFields<Other>(list.map { ($0.0, transform($0.1)) })
  }

  /// Both lists; of two fields with the same name the right one counts.
  @inlinable
  package static func + (left: Self, right: Self) -> Self { Self(left.list + right.list) }
}

/// Visits pairs or fields of a table, over which C walks; an error ends the walk.
class TableWalk {
  private var problem: (any Error)?

  /// Visits the pair or field on top of the stack, and leaves it there; false ends the walk.
  func visit(_ lua: OpaquePointer) throws -> Bool { false }

  /// Walks: `start` calls C with the function and the argument that it gets, and returns the status.
  final func run(
    on vm: LuaVM,
    _ start: (
      @convention(c) (OpaquePointer, UnsafeMutableRawPointer?) -> Bool, UnsafeMutableRawPointer
    )
      -> Int32
  ) throws {
    let status = withExtendedLifetime(self) {
      start(
        { lua, context in
          guard let context else { return false }
          let walk = Unmanaged<TableWalk>.fromOpaque(context).takeUnretainedValue()
          do { return try walk.visit(lua) } catch { walk.problem = error }
          return false
        }, Unmanaged.passUnretained(self).toOpaque())
    }
    try vm.check(status)
    if let problem { throw problem }
  }
}
