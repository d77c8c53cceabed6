internal import CFlowLua

/// A function of a script that is started many times, each time as a coroutine of the pool.
/// Everything that can be looked up once is looked up here.
package final class LuaCallback {
  /// Where the function gets a handle.
  package enum Handle: UInt8, Sendable {
    /// Nowhere.
    case none
    /// Before the bound values.
    case first
    /// After all other arguments.
    case last
  }

  /// The first results that the caller wants.
  package enum Result: UInt8, Sendable {
    /// Only userdata.
    case userdata
    /// Any.
    case value
    /// Any, taken out of its mark (see `LuaVM.makeMarker`); an argument is known as such.
    case unmarked
  }

  /// The function.
  package let function: LuaReference
  private let bound: LuaReference?
  // Unmanaged: the references keep the state.
  private let vm: Unmanaged<LuaVM>
  private let plain: flowlua_start

  /// A function to start.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - bound: A table whose first values are the function's first arguments, and their number.
  ///   - handle: Where the function gets a handle.
  ///   - result: The first results that the caller wants.
  package init(
    _ function: LuaReference, bound: (table: LuaReference, count: Int)? = nil,
    handle: Handle = .none, result: Result = .unmarked
  ) {
    vm = .passUnretained(function.vm)
    self.function = function
    self.bound = bound?.table
    var plain = flowlua_start(function: function.id, deadline: 0, grace: 0)
    if let bound {
      function.vm.checkHome(bound.table)
      if bound.table.kind != .table { misuse("a callback's bound arguments are no table") }
      plain.bound = bound.table.id
      plain.bound_count = Int32(clamping: bound.count)
    }
    plain.handle = handle.rawValue
    plain.wanted = result.rawValue
    self.plain = plain
  }

  /// Where the function was defined, as `file:line: `; nothing for one of C.
  package var position: ByteString {
    guard let place = function.vm.place(of: function) else { return "" }
    return ByteString(place.bytes + ": ".bytes)
  }

  /// Runs it up to its first wait. Slot and generation make the handle; they also identify the call
  /// if the function gets no handle. With a `deadline` the watchdog watches it from its first
  /// instruction; see `LuaVM.watch`. Owner thread only.
  package func start(
    slot: UInt32, generation: UInt64, deadline: Int64 = 0, grace: Int64 = 0
  ) -> LuaOutcome {
    start(nil, 0, slot, generation, deadline, grace)
  }

  /// Runs it with one or two arguments.
  package func start(
    _ first: LuaValue, _ second: LuaValue?, slot: UInt32, generation: UInt64, deadline: Int64 = 0,
    grace: Int64 = 0
  ) -> LuaOutcome {
    let home = function.vm
    guard let plain = flowlua_value(first, of: home),
      let other = flowlua_value(second ?? .nil, of: home)
    else {
      return start(
        second.map { [first, $0] } ?? [first], slot: slot, generation: generation,
        deadline: deadline, grace: grace)
    }
    return withUnsafeTemporaryAllocation(of: flowlua_value.self, capacity: 2) { raw in
      raw.initializeElement(at: 0, to: plain)
      raw.initializeElement(at: 1, to: other)
      return start(
        UnsafePointer(raw.baseAddress), second == nil ? 1 : 2, slot, generation, deadline, grace)
    }
  }

  /// Runs it with any number of arguments.
  package func start(
    _ arguments: [LuaValue], slot: UInt32, generation: UInt64, deadline: Int64 = 0,
    grace: Int64 = 0
  ) -> LuaOutcome {
    // Strings are valid during the call.
    withRawValues(of: function.vm, arguments) {
      start($0, Int32(clamping: arguments.count), slot, generation, deadline, grace)
    }
  }

  @inline(__always)
  private func start(
    _ arguments: UnsafePointer<flowlua_value>?, _ count: Int32, _ slot: UInt32,
    _ generation: UInt64, _ deadline: Int64, _ grace: Int64
  ) -> LuaOutcome {
    vm._withUnsafeGuaranteedRef { vm in
      do { try vm.enter() } catch { return .refused(error) }
      var start = plain
      start.arguments = arguments
      start.count = count
      start.slot = slot
      start.generation = generation
      start.deadline = deadline
      start.grace = grace
      return vm.start(&start)
    }
  }
}

extension LuaVM {
  /// A function that wraps its argument in a userdata with a mark. Functions of a script return it
  /// when they have more to return than a value.
  ///
  /// - Parameters:
  ///   - mark: The mark, which isn't 0.
  ///   - metatable: The metatable of the userdata.
  /// - Returns: The function.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  package func makeMarker(_ mark: Int32, metatable: LuaReference) throws -> LuaReference {
    try enter()
    checkHome(metatable)
    try check(flowlua_make_marker(state, mark, metatable.id))
    return try popReference(running, .function)
  }

  /// The mark of a marked value, and the value in it; mark 0, and the value itself, for any other.
  package func unmark(_ value: LuaValue) throws -> (mark: Int32, value: LuaValue) {
    guard case .reference(let reference) = value, reference.kind == .userdata else {
      return (0, value)
    }
    try enter()
    checkHome(reference)
    let lua = running
    try check(flowlua_make_room(state, lua, 4))
    flowlua_push_reference(state, lua, reference.id)
    let mark = flowlua_unmark(state, lua)
    return (mark, try popValue(lua))
  }
}
