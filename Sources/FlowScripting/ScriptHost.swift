public import FlowEngine
public import LuaVM

/// The engine as scripts see it: it puts the module `flow` into a Lua state and runs the ops, the
/// callbacks and the waits of scripts on an event loop.
///
/// It belongs to the thread that made it. Close it when done.
public final class ScriptHost {
  /// The Lua state.
  public let vm: LuaVM
  /// The loop that everything runs on.
  public let loop: EventLoop

  /// How long a coroutine that was asked to stop may go on regardless before it is closed, in
  /// nanoseconds.
  public var gracePeriod: Int64 = 1_000_000_000

  let types: ObjectTypes
  /// The metatable of error tables.
  let errorMetatable: LuaReference
  /// Parsed type texts by their spelling: scripts use few of them often.
  var typeCache: [ByteString: ValueType] = [:]
  /// The module table `flow`.
  public private(set) var module: LuaReference

  private let binder = Binder()

  /// Brings `flow` into a state: `require "flow"` gives the module.
  public init(vm: LuaVM, loop: EventLoop = EventLoop()) throws {
    self.vm = vm
    self.loop = loop
    errorMetatable = try vm.makeErrorMetatable()
    types = try ObjectTypes(vm: vm, binder: binder)
    module = try vm.makeTable()
    binder.host = self
    vm.setErrorMetatable(errorMetatable)
    vm.scheduler = self
    loop.makeList = { [unowned self] values in self.makeList(values) }
    loop.makeFailure = { [unowned self] index, input, error in
      self.makeFailure(index: index, input: input, error: error)
    }
    try installModule()
  }

  /// Closes the Lua state: its `__gc`s and pending `__close`s run. Afterwards nothing of the host can be
  /// used. Until then state and host keep each other alive.
  public func close() {
    vm.close()
    binder.host = nil
    loop.makeList = { .opaque(ListValue($0)) }
    loop.makeFailure = { .opaque(ItemFailure(index: $0, input: $1, error: $2)) }
  }

  // MARK: The end of a script

  /// Goes on until every run has settled and nothing is left to do. Runs that nothing can end any
  /// more fail as stalled.
  public func runToEnd() {
    var failed: Set<UInt64> = []
    loop.runUntilIdle()
    while failOneStalled(&failed) { loop.runUntilIdle() }
  }

  /// Fails the youngest run that nothing can end any more, once: it is what older ones wait for.
  /// Returns whether there was one.
  private func failOneStalled(_ failed: inout Set<UInt64>) -> Bool {
    guard let run = loop.pendingRuns.last(where: { !failed.contains($0.id) }) else {
      return false
    }
    failed.insert(run.id)
    run.failStalled()
    return true
  }

  /// What is to be told about failures that nobody observed: message and, where there is one, the
  /// script's traceback.
  public func unobservedFailures() -> [(name: ByteString, error: FlowError)] {
    loop.unobservedFailures.map { ($0.name, $0.error) }
  }

  /// Defines a function of the module.
  func define(_ name: String, _ function: @escaping BoundFunction) throws {
    let made = try vm.makeFunction(binder.bind(function))
    try vm.set(.reference(made), name, in: module)
  }

  private func installModule() throws {
    try installOps()
    try installFlows()
    try installGroups()
    try installTime()
    try vm.preload("flow") { [module] call in call.answer(.reference(module)) }
  }
}

/// A function of the API, written against the host.
typealias BoundFunction = (ScriptHost, LuaCall) throws -> LuaAnswer

/// A function of the API in a table of methods; see `LuaMethod`.
struct BoundMethod {
  let function: BoundFunction

  init(_ function: @escaping BoundFunction) {
    self.function = function
  }
}

/// Makes functions of the API callable from Lua. Methods are made before the host stands, so they
/// find it here.
final class Binder {
  // Unsafe: read at every call. The functions live in the state, which the host closes with itself,
  // and nothing calls them afterwards.
  unowned(unsafe) var host: ScriptHost?

  func bind(_ function: @escaping BoundFunction) -> LuaFunction {
    { [self] call in
      guard let host else { throw LuaError(.closed, "the script host is closed") }
      return try function(host, call)
    }
  }

  func bind(_ methods: [String: BoundMethod]) -> [String: LuaMethod] {
    methods.mapValues { LuaMethod(bind($0.function)) }
  }
}

extension ScriptHost: LuaScheduler {
  /// Runs the loop while the main chunk, or a C function, waits in place.
  public func pump(_ wait: LuaWait) {
    var failed: Set<UInt64> = []
    // When nothing can go on, what is pending fails first, which may end the wait.
    while !loop.run(until: { wait.isReady }), failOneStalled(&failed) {}
    if !wait.isReady {
      wait.fail(LuaError(.runtime, "stalled: nothing can end this wait"))
    }
  }
}
