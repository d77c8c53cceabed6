internal import CFlowLua
internal import CLua

/// A coroutine of Lua that a Swift program resumes, such as a generator.
///
/// ```swift
/// let generator = try LuaCoroutine(function)
/// while case .yielded(let values) = try generator.resume() { print(values) }
/// ```
///
/// A wait of its code, such as `flow.sleep`, runs the scheduler until it is over. Owner thread only.
public struct LuaCoroutine {
  /// The coroutine as a value, of kind `thread`.
  package let reference: LuaReference

  /// How a coroutine has stopped to run.
  public enum Outcome: Equatable {
    /// It has yielded these values; the arguments of the next `resume` become the results of its
    /// `coroutine.yield`.
    case yielded([LuaValue])
    /// It has returned these values, and is over.
    case returned([LuaValue])

    /// The values, either way.
    package var values: [LuaValue] {
      switch self {
      case .yielded(let values), .returned(let values): values
      }
    }
  }

  /// The state of a coroutine, as `coroutine.status` says it.
  package enum Status: String, Sendable {
    /// It can be resumed.
    case suspended
    /// The calling code runs in it.
    case running
    /// It has resumed the one that runs.
    case normal
    /// It has returned, or has raised an error.
    case dead
  }

  /// A coroutine with this body, which hasn't begun.
  ///
  /// - Parameter function: Its body.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  public init(_ function: LuaReference) throws {
    let vm = function.vm
    try vm.enter()
    try vm.check(flowlua_make_thread(vm.state, function.id))
    reference = try vm.popReference(vm.running, .thread)
  }

  /// The coroutine in a value; nil for any other value.
  package init?(_ value: LuaValue) {
    guard case .reference(let reference) = value, reference.kind == .thread else { return nil }
    self.reference = reference
  }

  /// Runs it until it yields or returns.
  ///
  /// - Parameter arguments: At first the arguments of its body, afterwards the results of its
  ///   `coroutine.yield`.
  /// - Returns: The values that it has yielded or returned.
  /// - Throws: The error that it has raised: a `LuaError` with the value, or the Swift error that passed
  ///   through Lua. A `LuaError` also for a coroutine that isn't suspended.
  @discardableResult
  public func resume(_ arguments: LuaValue...) throws -> Outcome {
    let vm = reference.vm
    try vm.enter()
    var count: Int32 = 0
    var hasYielded = false
    let status = withRawValues(of: vm, arguments) { raw in
      flowlua_resume_thread(
        vm.state, reference.id, raw, Int32(arguments.count), &hasYielded, &count)
    }
    if status != LUA_OK { throw vm.takeError(status) }
    let lua = vm.running
    defer { flowlua_pop(lua, count) }
    let first = lua_gettop(lua) - count + 1
    let values = try (0..<count).map { try vm.value(in: lua, at: first + $0) }
    return hasYielded ? .yielded(values) : .returned(values)
  }

  /// Its state; `dead` once the state is closed.
  package var status: Status {
    let vm = reference.vm
    guard (try? vm.enter()) != nil else { return .dead }
    switch Int(flowlua_thread_status(vm.state, reference.id)) {
    case FLOWLUA_THREAD_SUSPENDED: return .suspended
    case FLOWLUA_THREAD_RUNNING: return .running
    case FLOWLUA_THREAD_NORMAL: return .normal
    default: return .dead
    }
  }

  /// Ends it, as `coroutine.close`: its pending `<close>` variables are closed.
  ///
  /// - Throws: The error that one of them has raised, or that had ended the coroutine; a `LuaError` for
  ///   a coroutine that is running or has resumed another one.
  public func close() throws {
    let vm = reference.vm
    try vm.enter()
    try vm.check(flowlua_close_thread(vm.state, reference.id))
  }

  /// Its stack as text.
  package var traceback: ByteString {
    let vm = reference.vm
    guard (try? vm.enter()) != nil, lua_checkstack(vm.running, 2) != 0 else { return "" }
    flowlua_push_reference(vm.state, vm.running, reference.id)
    let thread = lua_tothread(vm.running, -1)
    flowlua_pop(vm.running, 1)
    guard let thread,
      let text = try? vm.popString(flowlua_traceback(vm.state, thread, nil, 0))
    else { return "" }
    return text
  }
}
