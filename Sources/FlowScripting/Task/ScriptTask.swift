@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A task that settles with the outcome of a Lua function: a continuation, or a spawned function.
/// The function runs as a coroutine, so it may wait.
class ScriptTask: ContinuationTask<FlowValue> {
  final let host: ScriptHost

  // Unchecked exclusivity, of these: only the loop's thread uses them, and no access lasts into a
  // call. There can be very many such tasks, so small fields are grouped.

  /// The op in whose code the task was made; generation 0 for none.
  private final let makerSlot: UInt32
  private final let makerGeneration: UInt64
  @exclusivity(unchecked) private final var function: LuaUniqueReference?
  @exclusivity(unchecked) private final var wasAskedWhenStalled = false
  @exclusivity(unchecked) private final var fiber: Fiber?
  /// The secrets that its function has made outside of runs; nil for none.
  @exclusivity(unchecked) final var secretHolds: SecretHolds?
  /// See `taskContext`.
  @exclusivity(unchecked) private final var keptContext: TaskContext?
  /// Whether its code runs in the Swift task that has begun it.
  @exclusivity(unchecked) private final var isInCallersTask = false
  /// See `holdOp`.
  @exclusivity(unchecked) private(set) final var op: OpContext?

  /// Makes a pending task; nil for the kind of task without a previous one.
  init(
    _ host: ScriptHost, _ kind: ContinuationKind?,
    _ thread: ContinuationThread, _ function: consuming LuaUniqueReference?
  ) {
    self.host = host
    self.function = consume function
    (makerSlot, makerGeneration) = host.currentOp.map { ($0.slot, $0.generation) } ?? (0, 0)
    keptContext = host.currentTask?.taskContext
    super.init(on: host.loop, kind, thread)
  }

  // The state that a function belongs to is released with the host, if this is its last reference.
  deinit { function = nil }

  /// The task-local values that Swift code has which its function calls; nil outside of calls by async code.
  // Made when they are first needed, because they cost as much as the call of a function that never waits.
  final var taskContext: TaskContext? {
    if keptContext == nil, isInCallersTask { keptContext = TaskContext() }
    return keptContext
  }

  /// Begins in a Swift task, whose task-local values its function keeps when it waits.
  final func beginInCallersTask() {
    isInCallersTask = true
    begin()
    if !isConcluded { keptContext = taskContext }
    isInCallersTask = false
  }

  /// The op in whose code the task was made, while it runs. It is kept while this task's code runs,
  /// in which the op may end.
  final func holdOp() -> Unmanaged<OpContext>? {
    if makerGeneration == 0 { return nil }
    op = host.context(slot: makerSlot, generation: makerGeneration)
    return op.map { .passUnretained($0) }
  }

  final override func runCode(after source: AnyFlowTask?) {
    guard let function = function.take(),
      let fiber = host.runFiber(function, of: self, after: source)
    else { return }
    waits(in: fiber)
  }

  /// Its code waits; called once for each start of it.
  final func waits(in fiber: Fiber) {
    self.fiber = fiber
    hold()
    // It was stopped before.
    if let stopError { fiber.cancel(stopError) }
  }

  /// Starts the function, with a deadline and a grace as of `LuaVM.start`.
  func start(
    _ function: consuming LuaUniqueReference, after source: AnyFlowTask?, deadline: Int64,
    grace: Int64
  ) -> LuaOutcome {
    let argument: LuaValue
    do { argument = try self.argument(source) } catch { return .refused(error) }
    return host.vm.start(function, argument, deadline: deadline, grace: grace)
  }

  /// The result of the previous task, if that is the function's argument and a number: it needs no
  /// conversion.
  @inline(__always)
  final func numberArgument(_ source: AnyFlowTask?) -> LuaValue? {
    guard let source, continuationKind?.isForResult == true else { return nil }
    return switch source.resultValue {
    case .integer(let integer): .integer(integer)
    case .number(let number): .number(number)
    default: nil
    }
  }

  /// The argument of a continuation, from the previous task.
  private final func argument(_ source: AnyFlowTask?) throws -> LuaValue {
    guard let source, let continuationKind else { return .nil }
    switch continuationKind {
    case .next, .finally: return try host.value(of: source)
    case .nextOnSuccess, .finallyOnSuccess: return try host.luaResult(of: source)
    case .nextOnError: return try host.error(of: source).map { try host.luaError($0) } ?? .nil
    }
  }

  /// Handles the value that the function has returned without a wait.
  @inline(__always)
  final func returned(_ value: LuaValue) {
    switch value {
    case .integer(let integer): keep(value: .integer(integer))
    case .number(let number): keep(value: .number(number))
    default:
      ended(.returned(value))
      return
    }
    returned()
  }

  /// Handles the outcome of the function.
  final func ended(_ end: Fiber.End) {
    fiber = nil
    switch end {
    case .returned(let value): take(value)
    case .failed(let error): failed(error)
    }
  }

  /// Takes what its function has returned.
  func take(_ value: LuaValue) {
    if case .reference = value, let next = host.task(in: value) {
      if host.mayLackOutcomes, let problem = host.outcomeProblem(of: next, madeAt: origin) {
        return failed(problem)
      }
      return follow(next)
    }
    keep(value: FlowValue(value))
    returned()
  }

  override func stopCode(_ error: FlowError) { fiber?.cancel(error) }

  final override func stopStalledCode(_ error: FlowError) -> Bool {
    guard let fiber else { return false }
    if wasAskedWhenStalled { fiber.close(error) } else { fiber.cancel(error) }
    wasAskedWhenStalled = true
    return true
  }

  /// Ends the function at once; its pending `__close`s run.
  final func closeCode(_ error: FlowError) {
    if let fiber { fiber.close(error) } else { stop(error) }
  }

  final override func dropCode() {
    function = nil
    fiber?.abandon()
    fiber = nil
    op = nil
  }

  final override func keepResult(of task: AnyFlowTask) throws {
    keep(value: try host.result(of: task))
  }

  final override func error(of task: AnyFlowTask) -> FlowError? { host.outcomeError(of: task) }

  final override func succeed() { endWithKeptResult() }
}

/// A task without a previous one, whose function gets arguments.
final class SpawnedTask: ScriptTask {
  private let arguments: [LuaValue]

  init(
    _ host: ScriptHost, _ function: consuming LuaUniqueReference, _ arguments: [LuaValue]
  ) {
    self.arguments = arguments
    super.init(host, nil, .immediate, function)
  }

  override func start(
    _ function: consuming LuaUniqueReference, after source: AnyFlowTask?, deadline: Int64,
    grace: Int64
  ) -> LuaOutcome {
    host.vm.start(function, arguments, deadline: deadline, grace: grace)
  }
}

/// Waits for a task, at most until a deadline.
class TaskWait: LuaWait, TaskObserver {
  final let target: AnyFlowTask
  // Safe: its code waits, so the loop keeps it. Cleared at the end of the wait.
  private(set) unowned(unsafe) var waitingTask: AnyFlowTask?
  private let answer: (LuaCall) throws -> LuaAnswer
  private var timer: LoopTimer?

  /// Begins a wait of `waiting`'s code; nil for code outside of tasks, and for a task that ends by
  /// itself.
  init(
    _ task: AnyFlowTask, for waiting: AnyFlowTask?, deadline: Int64?,
    answer: @escaping (LuaCall) throws -> LuaAnswer
  ) {
    target = task
    waitingTask = waiting
    self.answer = answer
    super.init()
    task.observe(waiting: self)
    waiting?.beginAwaiting(task)
    if let deadline { timer = task.loop.schedule(at: deadline, self) }
  }

  override var subject: String { "await \(target.title)" }

  func run() {
    abandon()
    ready()
  }

  /// Releases both, the task and the timer: the one that isn't ready would keep the wait.
  override func abandon() {
    target.unobserve(self)
    waitingTask?.endAwaiting(target)
    waitingTask = nil
    timer?.cancel()
    timer = nil
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer { try answer(call) }

  /// Whether a timeout of the waiting code stops the task, too. It doesn't stop one that code after the timeout may
  /// await again.
  var stopsTarget: Bool { false }

  /// Stops a task for which nothing waits any more, because its waiter was stopped.
  final func stopTarget(_ error: FlowError) {
    guard stopsTarget || error.kind == .cancelled && error.limit == nil else { return }
    let error = error.asReason
    // As a job: tasks can wait for each other in a chain of any length.
    target.loop.enqueue { [target] in
      if !target.isObserved(besides: nil) { target.stop(error) }
    }
  }
}
