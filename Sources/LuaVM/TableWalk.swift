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
