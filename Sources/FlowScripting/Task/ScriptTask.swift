@_spi(Scripting) internal import FlowEngine
internal import LuaVM

/// A task that ends as a Lua function says: a continuation, or what was spawned. The function runs as a
/// coroutine, so it may wait.
class ScriptTask: ContinuationTask<Value> {
  fileprivate final let host: ScriptHost

  // Unchecked exclusivity, of these: the loop's thread alone touches them, and no access lasts into
  // a call. There can be very many such tasks, so what is small stands together.

  /// The op in whose code the task was made; generation 0 for none.
  private final let makerSlot: UInt32
  private final let makerGeneration: UInt64
  @exclusivity(unchecked) private final var function: LuaUniqueReference?
  @exclusivity(unchecked) private final var wasAskedWhenStalled = false
  @exclusivity(unchecked) private final var fiber: Fiber?
  /// See `holdOp`.
  @exclusivity(unchecked) private(set) final var op: OpContext?

  /// Makes a pending task; nil for the kind of one without a task before.
  init(
    _ host: ScriptHost, _ kind: ContinuationKind?,
    _ thread: ContinuationThread, _ function: consuming LuaUniqueReference
  ) {
    self.host = host
    self.function = consume function
    (makerSlot, makerGeneration) = host.currentHandle
    super.init(on: host.loop, kind, thread)
  }

  // The state that a function belongs to goes with the host, if that goes here.
  deinit { function = nil }

  /// The op in whose code the task was made, while that goes on; for a stretch of this one's code, in
  /// which the op may end.
  final func holdOp() -> Unmanaged<OpContext>? {
    if makerGeneration == 0 { return nil }
    op = host.context(slot: makerSlot, generation: makerGeneration)
    return op.map { .passUnretained($0) }
  }

  final override func runCode(after source: AnyFlowTask?) {
    guard let function = function.take(), let fiber = start(function, after: source) else {
      return
    }
    self.fiber = fiber
    hold()
    // It was stopped while it ran to its first wait.
    if let stopError { fiber.cancel(stopError) }
  }

  /// Starts the function; answers its coroutine if that waits.
  fileprivate func start(
    _ function: consuming LuaUniqueReference, after source: AnyFlowTask?
  ) -> Fiber? {
    if let source, let continuationKind, continuationKind.isForResult,
      let scalar = source.scalarResult
    {
      return host.runFiber(function, scalar: scalar, of: self)
    }
    let argument: LuaValue
    do {
      argument = try self.argument(source)
    } catch {
      failed(host.flowError(thrown: error, op: nil))
      return nil
    }
    return host.runFiber(function, argument, of: self)
  }

  /// What a continuation gets of the task before.
  private final func argument(_ source: AnyFlowTask?) throws -> LuaValue {
    guard let source, let continuationKind else { return .nil }
    switch continuationKind {
    case .next, .finally: return try host.value(of: source)
    case .nextOnSuccess, .finallyOnSuccess: return try host.luaResult(of: source)
    case .nextOnError: return try host.error(of: source).map { try host.luaError($0) } ?? .nil
    }
  }

  /// Takes how the function has ended.
  final func ended(_ end: Fiber.End) {
    fiber = nil
    switch end {
    case .returned(let value):
      if let next = host.task(in: value) {
        if host.isChecking, let problem = host.outcomeProblem(of: next, madeAt: origin) {
          return failed(problem)
        }
        return follow(next)
      }
      keep(value: Value(value))
      returned()
    case .failed(let error): failed(error)
    }
  }

  /// Takes a scalar that the function has returned.
  final func returned(scalar: LuaScalar) {
    keep(value: Value(scalar))
    returned()
  }

  final override func stopCode(_ error: FlowError) { fiber?.cancel(error) }

  final override func stopStalledCode(_ error: FlowError) -> Bool {
    guard let fiber else { return false }
    if wasAskedWhenStalled { fiber.close(error) } else { fiber.cancel(error) }
    wasAskedWhenStalled = true
    return true
  }

  final override func dropCode() {
    function = nil
    fiber = nil
    op = nil
  }

  final override func keepResult(of task: AnyFlowTask) throws {
    keep(value: try host.result(of: task))
  }

  final override func error(of task: AnyFlowTask) -> FlowError? { host.outcomeError(of: task) }

  final override func succeed() { endWithKeptValue() }
}

/// A task without one before, whose function gets arguments.
final class SpawnedTask: ScriptTask {
  private let arguments: [LuaValue]

  init(
    _ host: ScriptHost, _ function: consuming LuaUniqueReference, _ arguments: [LuaValue]
  ) {
    self.arguments = arguments
    super.init(host, nil, .immediate, function)
  }

  override func start(
    _ function: consuming LuaUniqueReference, after source: AnyFlowTask?
  ) -> Fiber? {
    host.runFiber(function, arguments, of: self)
  }
}

extension ScriptHost {
  /// Tells the op whose code runs now from all others; generation 0 for none.
  fileprivate var currentHandle: (slot: UInt32, generation: UInt64) {
    currentOp.map { ($0.slot, $0.generation) } ?? (0, 0)
  }
}
