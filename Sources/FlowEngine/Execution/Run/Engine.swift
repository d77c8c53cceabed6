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
  var randomNumberGenerator: any RandomNumberGenerator = SystemRandomNumberGenerator()
  /// Runs that haven't concluded.
  var pending: [UInt64: Run] = [:]

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) var replacements: OpReplacements?
  /// How long a body may still run after a stop, in nanoseconds; `gracePeriod` of the loop.
  @exclusivity(unchecked) var gracePeriod: Int64 = 1_000_000_000
  /// How long all cleanups of an op or flow have together after a stop.
  @exclusivity(unchecked) var cleanupGrace = Duration.seconds(30)
  /// The execution whose declarations are being checked, perhaps by functions of a script.
  /// Unmanaged: it is on the stack.
  @exclusivity(unchecked) var checking: Unmanaged<Execution>?

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

  override func cancelAll(reason: ByteString, on loop: EventLoop) {
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

extension EventLoop {
  /// The engine of the loop.
  @inline(__always)
  final var engine: Engine {
    // Safe: `init(clock:keys:failures:)` makes no other registry.
    unsafeDowncast(registry, to: Engine.self)
  }

  /// Makes a loop of its own, confined to the thread that makes it.
  ///
  /// - Parameter clock: The source of the time.
  public convenience init(clock: any TimeSource = SystemClock()) {
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
  public var runMonitors: [any RunMonitor] {
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
  /// Finds the op whose code runs, for a front end whose code may use contexts of other ops; nil for none.
  package var codeContext: (() -> OpContext?)? {
    get { engine.codeContext }
    set { engine.codeContext = newValue }
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
