internal import FlowLoop

/// Executes ops, flows, groups and machines on the event loop that it is attached to.
///
/// Confined to the loop's thread.
final class Engine: WorkScheduler {
  /// Makes the list that a group collects.
  var makeList: (ContiguousArray<FlowValue>) -> FlowValue = { .opaque(ListValue($0)) }
  /// Makes the record of a failed item (0-based index) for a group's `failures`.
  var makeFailure: (_ index: Int, _ input: FlowValue, _ error: FlowError) -> FlowValue = {
    .opaque(ItemFailure(index: $0, input: $1, error: $2))
  }
  /// Makes the runner for a group's items when the op doesn't make one.
  var makeItemRunner: ((ItemWork) -> (any ItemRunner)?)?
  var eventSinks: [any EventSink] = []
  var runMonitors: [any RunMonitor] = []
  var runWatch: (any RunWatch)?
  var trace: TraceContext?
  var codeContext: (() -> OpContext?)?
  var runAdopters: [ObjectIdentifier: (Run) -> Bool] = [:]
  var errorMapper: ((any Error) -> FlowError)?
  var randomNumberGenerator: any RandomNumberGenerator = SystemRandomNumberGenerator()
  /// Runs that haven't concluded.
  var pending: [UInt64: Run] = [:]

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) var replacements: OpReplacements?
  /// How long a body may still run after a stop, in nanoseconds; `gracePeriod` of the loop.
  @exclusivity(unchecked) var gracePeriod: Int64 = 1_000_000_000
  /// How long all cleanups of an op or flow have together after a stop.
  @exclusivity(unchecked) var cleanupGrace = Duration.seconds(30)
  /// The execution for which functions are called that it can't wait for: those that check declarations, and those of
  /// a group.
  @exclusivity(unchecked) var checking: CheckingExecution?

  // Unretained, so that an execution can detect whether other code holds its context; each is
  // cleared or replaced before its execution releases it.
  @exclusivity(unchecked) var contexts: ContiguousArray<Unmanaged<OpContext>?> = []
  @exclusivity(unchecked) var freeSlots: ContiguousArray<UInt32> = []
  @exclusivity(unchecked) var freeContexts: ContiguousArray<OpContext> = []

  /// Dismantles the objects that pending runs hold, member by member, so that no depth of nesting
  /// needs recursion to be released.
  override func loopIsShutDown() {
    isShutDown = true
    let held = continuations.values
    continuations = [:]
    for continuation in held { continuation.abandonContinuation() }
    for run in pending.values { (run.op.body as? any Abandonable)?.abandon() }
    var open = pending.values.compactMap { $0.abandon() }
    pending = [:]
    while let execution = open.popLast() { open.append(contentsOf: execution.abandon()) }
    makeItemRunner = nil
    super.loopIsShutDown()
  }

  override func cancelAll(reason: ByteString, on loop: FlowEventLoop) {
    for task in loop.pendingTasks { task.cancel(reason: reason) }
    super.cancelAll(reason: reason, on: loop)
  }

  override func hasLooked(at time: Int64) { runWatch?.look(at: time) }

  // MARK: Contexts

  /// How many contexts are kept for later use.
  private static var contextPoolLimit: Int { 1024 }

  func takeContext() -> OpContext {
    if let context = freeContexts.popLast() { return context }
    let slot = freeSlots.popLast() ?? UInt32(truncatingIfNeeded: contexts.count)
    if slot == contexts.count { contexts.append(nil) }
    return makeContext(slot)
  }

  /// Makes a new context in the slot of one that has to be released.
  func makeContext(_ slot: UInt32) -> OpContext {
    let context = OpContext(slot: slot)
    // Unretained: see `contexts`.
    contexts[Int(slot)] = Unmanaged.passUnretained(context)
    return context
  }

  /// Takes back a context that only its execution holds.
  func recycle(_ context: OpContext) {
    if freeContexts.count < Self.contextPoolLimit {
      freeContexts.append(context)
    } else {
      dropSlot(of: context)
    }
  }

  func dropSlot(of context: OpContext) {
    contexts[Int(context.slot)] = nil
    freeSlots.append(context.slot)
  }
}

extension Work {
  /// The engine that executes it.
  @inline(__always)
  final var engine: Engine {
    // Safe: no other scheduler is made.
    unsafeDowncast(scheduler, to: Engine.self)
  }
}

extension FlowEventLoop {
  /// The engine of the loop.
  @inline(__always)
  final var engine: Engine {
    // Safe: `init(clock:keys:failures:)` makes no other registry.
    unsafeDowncast(registry, to: Engine.self)
  }

  /// Makes a loop of its own, confined to the thread that makes it.
  ///
  /// - Parameter clock: A clock for tests; nil for the machine's.
  public convenience init(clock: VirtualClock? = nil) {
    self.init(clock: clock ?? SystemClock() as any TimeSource)
  }

  package convenience init(clock: any TimeSource) {
    self.init(clock: clock, secrets: SecretTexts())
  }

  /// Makes a loop that shares `secrets`, the texts that no output of the loop may contain, with loops of other
  /// threads that work together with it.
  package convenience init(clock: any TimeSource = SystemClock(), secrets: SecretTexts) {
    self.init(clock: clock, keys: KeyTable(secrets: secrets), failures: FailureReports())
  }

  convenience init(clock: any TimeSource, keys: KeyTable, failures: FailureReports) {
    self.init(timedBy: clock, client: Engine(keys: keys, failures: failures))
  }

  /// Makes the list that a group collects.
  package var makeList: (ContiguousArray<FlowValue>) -> FlowValue {
    get { engine.makeList }
    set { engine.makeList = newValue }
  }
  /// Makes the record of a failed item (0-based index) for a group's `failures`.
  package var makeFailure: (_ index: Int, _ input: FlowValue, _ error: FlowError) -> FlowValue {
    get { engine.makeFailure }
    set { engine.makeFailure = newValue }
  }
  /// Makes the runner for a group's items when the op doesn't make one. Without it, or when it
  /// returns nil, the loop executes them itself.
  package var makeItemRunner: ((ItemWork) -> (any ItemRunner)?)? {
    get { engine.makeItemRunner }
    set { engine.makeItemRunner = newValue }
  }
  /// Sinks that every run started from now on writes to, besides its own.
  public var eventSinks: [any EventSink] {
    get { engine.eventSinks }
    set { engine.eventSinks = newValue }
  }
  /// Monitors that are notified of each run that starts from now on and wasn't started by an op of
  /// another run.
  package var runMonitors: [any RunMonitor] {
    get { engine.runMonitors }
    set { engine.runMonitors = newValue }
  }
  /// Counts the memory of each run that starts from now on, new keys, and the outputs of programs; nil, the
  /// default, to count nothing.
  package var memory: MemoryAccount? {
    get { engine.memory }
    set {
      engine.memory = newValue
      keys.account = newValue
      memoryMeter = newValue
    }
  }
  /// The distributed trace that programs and requests of ops continue: they get the span of their op, unless
  /// they say otherwise. nil, the default, leaves them alone.
  public var trace: TraceContext? {
    get { engine.trace }
    set { engine.trace = newValue }
  }
  /// The replacements of ops; set while no run is pending.
  public var replacements: OpReplacements? {
    get { engine.replacements }
    set { engine.replacements = newValue }
  }
  /// How long a body may still run after a stop, by default 1 second; its cleanups have `cleanupGrace`.
  public var gracePeriod: Duration {
    get { .nanoseconds(engine.gracePeriod) }
    set { engine.gracePeriod = newValue.clampedNanoseconds }
  }
  /// How long all cleanups of an op or flow have together after a stop, from the start of
  /// the first one: cleanups, final steps, callbacks after a flow's end. By default 30 seconds;
  /// a negative duration counts as 0. The `grace` of an op or flow takes
  /// precedence. After success and failure, cleanups have unlimited time.
  public var cleanupGrace: Duration {
    get { engine.cleanupGrace }
    set { engine.cleanupGrace = max(newValue, .zero) }
  }
  /// The source of the jitter of retries; set a `SeededGenerator` to make it predictable.
  package var randomNumberGenerator: any RandomNumberGenerator {
    get { engine.randomNumberGenerator }
    set { engine.randomNumberGenerator = newValue }
  }
  /// Makes the error of the engine from one that Swift code of the program has thrown in an op or in a function for scripts:
  /// for what scripts, logs and callers are to see of it. nil: the message is the error's description.
  ///
  /// It isn't called for errors that are made for that, a `FlowError` or one of Lua, nor for `CancellationError`. The
  /// thrown error becomes the result's `underlying` if it has none. Called on the loop's thread.
  public var errorMapper: ((any Error) -> FlowError)? {
    get { engine.errorMapper }
    set { engine.errorMapper = newValue }
  }
  /// Finds the op whose code runs, for a front end whose code may use contexts of other ops; nil for none.
  package var codeContext: (() -> OpContext?)? {
    get { engine.codeContext }
    set { engine.codeContext = newValue }
  }
  /// Has `adopt` called with each run that Swift code starts alone, before anything of it is executed, for a front end to
  /// which that code may belong: it returns whether it does. Nil for no more.
  package func adoptRuns(for owner: AnyObject, _ adopt: ((Run) -> Bool)?) {
    engine.runAdopters[ObjectIdentifier(owner)] = adopt
  }

  /// Gives a run to the front end to which the code belongs that starts it.
  var adoptsRun: ((Run) -> Void)? {
    let adopters = engine.runAdopters
    return adopters.isEmpty ? nil : { run in _ = adopters.values.contains { $0(run) } }
  }
  /// Whether ops are executing below on the stack.
  package var isExecuting: Bool { engine.isExecuting }

  /// Calls `body` when no op is executing below on the stack; a later call replaces an earlier one.
  package func afterExecuting(_ body: @escaping () -> Void) { engine.afterExecuting = body }

  /// Called now and then while ops execute without waiting. It must not wait.
  package var onLook: (() -> Void)? {
    get { engine.onLook }
    set { engine.onLook = newValue }
  }
}

extension FlowEventLoop {
  /// The execution that waits for a function on this thread, such as one that checks an op's declarations; nil for none.
  /// Such a function sets it to nil while it runs the loop.
  package var checking: CheckingExecution? {
    get { engine.checking }
    set { engine.checking = newValue }
  }

  /// The context of a live execution; nil when that execution has settled.
  package func context(slot: UInt32, generation: UInt64) -> OpContext? {
    unmanagedContext(slot: slot, generation: generation)?.takeUnretainedValue()
  }

  /// Returns the context without a retain, for a use that can't end the op.
  package func unmanagedContext(slot: UInt32, generation: UInt64) -> Unmanaged<OpContext>? {
    // Safe: the loop holds its engine.
    unretained(engine) { engine in
      guard slot < engine.contexts.count, let context = engine.contexts[Int(slot)] else {
        return nil
      }
      // Safe: a context in this list is alive, and nothing here can release it.
      let isLive = context.lend { $0.generation == generation && $0.isOpen }
      return isLive ? context : nil
    }
  }
}

extension FlowEventLoop {
  /// The event loop of the calling thread: the default wherever a loop is a parameter.
  ///
  /// Within an op, a callback or other code that a loop executes it is that loop, and on a `LoopThread` the loop
  /// of the thread. Elsewhere it is the loop that ran last on the thread, or the first one made there. A thread
  /// without a loop gets one, which lives until the thread ends; its owner turns it, such as by `run.wait()` or
  /// `runUntilIdle()`.
  ///
  /// Code of a Swift task that isn't on a loop or the main thread has none, because it may continue on another
  /// thread after each `await`: there it ends the process with a sentence. Use `LoopThread.perform`. Several
  /// loops of one thread are best passed explicitly, as are those of tests.
  public static var current: FlowEventLoop { current(orMake: { FlowEventLoop() }) }
}

/// Loops within loops: a part of a program runs to its end on a clock of its own while the rest
/// pauses.
extension FlowEventLoop {
  /// A loop that runs within calls of another one, on the same thread; see `standStill`.
  ///
  /// It shares the names of keys and the list of unobserved failures, makes values as the outer
  /// loop does, and notifies the same sinks and monitors. Runs, tasks, timers and programs are its
  /// own.
  ///
  /// - Parameters:
  ///   - outer: The loop that pauses meanwhile.
  ///   - clock: The source of its time.
  package convenience init(within outer: FlowEventLoop, clock: any TimeSource) {
    outer.checkThread()
    self.init(clock: clock, keys: outer.keys, failures: outer.registry.failures)
    let (engine, outer) = (engine, outer.engine)
    engine.makeList = outer.makeList
    engine.makeFailure = outer.makeFailure
    engine.makeItemRunner = outer.makeItemRunner
    engine.gracePeriod = outer.gracePeriod
    engine.cleanupGrace = outer.cleanupGrace
    engine.onLook = outer.onLook
    engine.describeOrigin = outer.describeOrigin
  }

  /// Lets an inner loop run instead of this one while `body` executes, which has to turn it.
  ///
  /// Nothing of this loop runs meanwhile: the followers of a task that `body` settles here are
  /// called afterwards. May be called from within a body or callback of this loop.
  ///
  /// - Parameters:
  ///   - inner: A loop made with `init(within:clock:)` of this one.
  ///   - body: The code to execute meanwhile.
  /// - Returns: The result of `body`.
  package func standStill<Result>(for inner: FlowEventLoop, _ body: () throws -> Result) rethrows
    -> Result
  {
    checkThread()
    guard inner.keys === keys else { misuse("a loop was run within one that it wasn't made for") }
    inner.memoryMeter = memoryMeter
    let (outer, inner) = (engine, inner.engine)
    inner.eventSinks = outer.eventSinks
    inner.runMonitors = outer.runMonitors
    inner.memory = outer.memory
    // No handle of an execution or task of one loop is ever valid on the other.
    inner.lastTaskID = max(outer.lastTaskID, inner.lastTaskID)
    inner.generation = max(outer.generation, inner.generation) + Engine.generationGap
    let wasStandingStill = outer.isStandingStill
    outer.isStandingStill = true
    defer {
      outer.isStandingStill = wasStandingStill
      outer.lastTaskID = max(outer.lastTaskID, inner.lastTaskID)
      let begun = outer.generation
      outer.generation = max(outer.generation, inner.generation)
      // Executions of the inner loop don't count here.
      outer.turnEnd &+= outer.generation &- begun
      outer.stamp = 0
    }
    return try body()
  }
}

extension Engine {
  /// More than the number of executions that the outer loop starts or ends meanwhile.
  fileprivate static var generationGap: UInt64 { 1 << 32 }
}

extension FlowEventLoop {
  /// Runs that haven't concluded, in the order in which they were started.
  public var pendingRuns: [Run] { engine.pending.values.sorted { $0.id < $1.id } }

  /// All tasks that run by themselves and haven't concluded, in the order of their start: runs, and
  /// tasks whose code waits.
  package var pendingTasks: [AnyFlowTask] {
    (Array(engine.pending.values) + Array(engine.continuations.values)).sorted { $0.id < $1.id }
  }

  /// The pending task with this id, if there is one.
  package func pendingTask(_ id: UInt64) -> AnyFlowTask? {
    engine.pending[id] ?? engine.continuations[id]
  }

  /// The number of pending tasks.
  package var pendingTaskCount: Int { engine.pending.count + engine.continuations.count }

  /// The id of the task that was made last.
  package var newestTask: UInt64 { engine.lastTaskID }
}

extension LoopThread {
  /// Starts a thread with a loop for runs and tasks, and returns when its loop exists.
  ///
  /// - Parameters:
  ///   - name: The name of the thread, in errors and for the system.
  ///   - clock: A clock for tests; nil for the machine's.
  /// - Throws: A `SystemError` if the system gives no thread, or no descriptor to wake the loop.
  public convenience init(name: String = "flow", clock: VirtualClock? = nil) throws(SystemError) {
    try self.init(name: name) { FlowEventLoop(clock: clock) }
  }

  /// Runs code on the thread and returns its result; for any Swift task.
  ///
  /// Cancelling the calling task cancels the code. Called on the thread itself, the code runs as another
  /// task of it.
  ///
  /// - Parameter operation: The code; it always runs on the thread, whatever it awaits in between.
  /// - Returns: Its result.
  /// - Throws: The error of the code, unchanged; a `FlowError` of kind `cancelled` when the thread shuts down
  ///   before the code ends, or has done so; `CancellationError` when the calling task is cancelled.
  public func perform<Success: Sendable>(
    _ operation:
      nonisolated(nonsending) @escaping @Sendable (FlowEventLoop) async throws -> Success
  ) async throws -> Success {
    if isShuttingDown { throw shutdownError }
    do {
      return try await mailbox.perform(operation)
    } catch is CancellationError where isShuttingDown && !Task.isCancelled {
      throw shutdownError
    }
  }

  private var shutdownError: FlowError { .cancelled(reason: core.endError.message) }
}
