@_spi(Scripting) internal import FlowEngine
internal import LuaVM

/// A task that ends as a Lua function says: a continuation, or what was spawned. The function runs as a
/// coroutine, so it may wait.
final class ScriptTask: ContinuationTask<Value> {
  /// What the function gets: arguments, or what the task before has come to.
  enum Input {
    case arguments([LuaValue])
    case task, result, error

    /// What a continuation gets.
    init(_ kind: ContinuationKind) {
      switch kind {
      case .next, .finally: self = .task
      case .nextOnSuccess, .finallyOnSuccess: self = .result
      case .nextOnError: self = .error
      }
    }
  }

  private let host: ScriptHost
  private let input: Input
  /// The op in whose code the task was made; generation 0 for none.
  private let makerGeneration: UInt64

  // Unchecked exclusivity, of these: the loop's thread alone touches them, and no access lasts into
  // a call. There can be very many such tasks, so what is small stands together.

  @exclusivity(unchecked) private var function: LuaUniqueReference?
  private let makerSlot: UInt32
  @exclusivity(unchecked) private var wasAskedWhenStalled = false
  @exclusivity(unchecked) private var fiber: Fiber?
  /// See `holdOp`.
  @exclusivity(unchecked) private var op: OpContext?

  init(
    _ host: ScriptHost, _ kind: ContinuationKind,
    _ thread: ContinuationThread, _ function: consuming LuaUniqueReference
  ) {
    self.host = host
    self.function = consume function
    input = Input(kind)
    (makerSlot, makerGeneration) = host.currentHandle
    super.init(on: host.loop, kind, thread)
  }

  /// The code of a task without one before.
  init(
    _ host: ScriptHost, _ function: consuming LuaUniqueReference, _ arguments: [LuaValue]
  ) {
    self.host = host
    self.function = consume function
    input = .arguments(arguments)
    (makerSlot, makerGeneration) = host.currentHandle
    super.init(on: host.loop)
  }

  // The state that a function belongs to goes with the host, if that goes here.
  deinit { function = nil }

  /// The op in whose code the task was made, while that goes on; for a stretch of this one's code, in
  /// which the op may end.
  func holdOp() -> Unmanaged<OpContext>? {
    if makerGeneration == 0 { return nil }
    op = host.context(slot: makerSlot, generation: makerGeneration)
    return op.map { .passUnretained($0) }
  }

  override func runCode(after source: AnyFlowTask?) {
    guard let function = function.take() else { return }
    if case .arguments(let arguments) = input {
      fiber = host.runFiber(function, arguments, of: self)
    } else {
      do {
        fiber = host.runFiber(function, try argument(source), of: self)
      } catch {
        return failed(host.flowError(thrown: error, op: nil))
      }
    }
    guard let fiber else { return }
    hold()
    // It was stopped while it ran to its first wait.
    if let stopError { fiber.cancel(stopError) }
  }

  /// What a continuation gets of the task before.
  private func argument(_ source: AnyFlowTask?) throws -> LuaValue {
    guard let source else { return .nil }
    switch input {
    case .arguments: return .nil
    case .task: return try host.value(of: source)
    case .result: return try host.luaResult(of: source)
    case .error: return try host.error(of: source).map { try host.luaError($0) } ?? .nil
    }
  }

  /// Takes how the function has ended.
  func ended(_ end: Fiber.End) {
    fiber = nil
    switch end {
    case .returned(let value):
      if let next = host.task(in: value) { return follow(next) }
      keep(value: Value(value))
      returned()
    case .failed(let error): failed(error)
    }
  }

  /// Takes a scalar that the function has returned.
  func returned(scalar: LuaValue) {
    keep(value: Value(scalar))
    returned()
  }

  override func stopCode(_ error: FlowError) { fiber?.cancel(error) }

  override func stopStalledCode(_ error: FlowError) -> Bool {
    guard let fiber else { return false }
    if wasAskedWhenStalled { fiber.close(error) } else { fiber.cancel(error) }
    wasAskedWhenStalled = true
    return true
  }

  override func dropCode() {
    function = nil
    fiber = nil
    op = nil
  }

  override func keepResult(of task: AnyFlowTask) throws { keep(value: try host.result(of: task)) }

  override func error(of task: AnyFlowTask) -> FlowError? { host.outcomeError(of: task) }

  override func succeed() { endWithKeptValue() }
}

extension ScriptHost {
  /// Tells the op whose code runs now from all others; generation 0 for none.
  fileprivate var currentHandle: (slot: UInt32, generation: UInt64) {
    currentOp.map { ($0.slot, $0.generation) } ?? (0, 0)
  }
}
