public import FlowEngine
internal import FlowHTTP
@_spi(Scripting) public import LuaVM

/// The engine for scripts: it adds the module `flow` to a Lua state and runs the ops, callbacks and
/// waits of scripts on an event loop.
///
/// It belongs to the thread that made it, and a loop has one host at a time. Close it when done:
/// until then state and host keep each other alive.
public final class ScriptHost {
  /// The Lua state.
  public let vm: LuaVM
  /// The loop on which everything runs: the host's own, or during `testing.run` the test's.
  public var loop: EventLoop { activeLoop }
  // Not public, because the attribute is lost on the way to another module.
  @exclusivity(unchecked) var activeLoop: EventLoop
  /// The loops that are paused while another one is active, the host's own first.
  var waitingLoops: [EventLoop] = []
  /// Loops for further tests, on which nothing is pending.
  var idleTestLoops: [EventLoop] = []
  /// Called whenever another loop becomes active, so that signals can wake it.
  package var onLoopChange: ((EventLoop) -> Void)?

  /// The op whose code is running; nil outside of ops. Set while its coroutine runs.
  var currentOp: OpContext? { current.op?.takeUnretainedValue() }
  /// The run whose `will_start` or predicate is running.
  var currentRun: Run? { current.run?.takeUnretainedValue() }
  /// The task whose function is running; nil in ops and callbacks.
  var currentTask: ScriptTask? { current.task?.takeUnretainedValue() }
  /// The place in the log of programs and requests that the running code starts; nil outside of runs.
  var workPlace: WorkPlace? {
    if let currentOp { return currentOp.workPlace }
    if let currentTask { return currentTask.owner?.workPlace }
    return currentRun?.workPlace
  }
  @exclusivity(unchecked) var current = Current()
  /// The coroutine that was last continued after a wait, while it runs. Unmanaged, as in `Current`:
  /// the loop that runs it keeps it.
  @exclusivity(unchecked) var fiber: Unmanaged<Fiber>?
  /// Cancels what the host runs, from any thread; see `canceller`.
  var openCanceller: ScriptCanceller?
  /// The alarm at the end of the time limit; see `timeLimit`.
  var timeAlarm: LuaAlarm?
  /// How long the host may run scripts from the time at which this is set; nil, the default, for any time. Set on
  /// the thread of the host; setting it again replaces the limit, and nil removes it.
  ///
  /// At its end everything that the host runs is stopped as by `ScriptCanceller.cancel`, busy code as well: runs,
  /// tasks and the code that executes or waits then, with an error of kind `time`. Cleanups and final steps run. The
  /// time is that of the system, also on a loop with a virtual clock.
  ///
  /// ```swift
  /// host.timeLimit = .seconds(60)
  /// ```
  ///
  /// The error is thrown once: a host that runs nothing at the end of the limit throws it when it next runs
  /// something, and can be used again afterwards. The main chunk of `vm.call` can catch the error; code of ops and
  /// tasks and of `call(_:_:deadline:)` can't. If the system gives no thread for the limit, everything ends at
  /// once with an error that says so.
  public var timeLimit: Duration? {
    didSet { limitTime() }
  }
  /// How many waits of the main chunk run the loop.
  var mainWaits = 0
  /// The first flow with a step, and the origin of the call that added it.
  var builtFlow: (name: ByteString, origin: UInt64)?
  /// Whether a flow was described, or its code digested.
  var describesFlows = false
  /// The origin of the first call with an option `cache`.
  var originOfCache: UInt64?
  /// The error for the innermost of those waits, if code above it has taken a cancellation.
  var mainCancellation: FlowError?
  /// Whether the running `__close`s belong to a coroutine after its grace: they may not wait.
  var cutsCloses = false

  /// The owners of the running code.
  struct Current {
    // Unmanaged, because retains would cost more than the rest. Safe: the execution that runs the op
    // keeps the context and the run, and the code that sets them resets them.
    var op: Unmanaged<OpContext>?
    var run: Unmanaged<Run>?
    /// The task whose function is running, which keeps it; nil in ops and callbacks.
    var task: Unmanaged<ScriptTask>?
  }

  let types: ObjectTypes
  /// The ops in `flow.ops`.
  let registry = OpRegistry()
  /// The metatable of error tables.
  let errorMetatable: LuaReference
  let keptErrors = KeptErrors()
  /// The metatable of what `flow.setting` returns.
  let settingMetatable: LuaReference
  /// The metatable of the results of `flow.continue`, `flow.finish` and `flow.retry`.
  let reductionMetatable: LuaReference
  /// Makes the Lua functions of wrapping ops; made with the first of them.
  var wrapperFactory: LuaReference?
  /// The ops that are being released; see `release(_:)`.
  var releasedOps: [Unmanaged<Op>] = []
  /// The methods of programs, once one has been needed; see `programs`.
  var openPrograms: ProgramMethods?
  /// Whether a session reads the standard input of the process, so that code of the session can't.
  package var sessionReadsInput = false
  /// Whether logs have each wait of an op's or callback's code, for traces; of workers, those that start from
  /// now on. It doubles the logs of ops that wait.
  package var logsWaits: Bool {
    get { waitBegins != nil }
    set { waitBegins = newValue ? [:] : nil }
  }
  /// When the fibers that wait began to; nil unless waits are logged.
  // Unchecked exclusivity, because each wait looks: see HotPath.swift.
  @exclusivity(unchecked) var waitBegins: [ObjectIdentifier: Int64]?
  /// The name of the service in the spans of `otlp(of:)`: `flowlua`, unless the program sets another one.
  /// `OTEL_SERVICE_NAME` and a `service.name` in `OTEL_RESOURCE_ATTRIBUTES`, if they are set, take precedence.
  public var serviceName: ByteString = "flowlua"
  /// What `flow.sandbox` grants in addition to what the script names; nil, the default, refuses the function: it
  /// restricts the whole process.
  package var sandbox: (() -> Sandbox)?
  /// What keeps the runs of the script; nil for nothing.
  package internal(set) var keeping: ScriptKeeping?
  /// How runs are kept that the script itself wants to be kept; nil, the default, refuses that.
  package var keepingDefaults: (() -> ScriptKeeping.Options)?
  /// Called when runs of the script begin to be kept.
  package var onKeeping: ((ScriptKeeping) -> Void)?
  /// The trace of spans while the loop has none.
  private(set) lazy var ownTrace = TraceContext()
  /// For values of `run.data`, once one has been needed.
  var openDataViews: RunDataViews?
  /// The digests of modules, once a form of code has needed one.
  lazy var moduleDigests = ModuleDigests(vm)
  /// Parsed type texts by their spelling: scripts use a few of them often.
  var typeCache: [ByteString: FlowValueType] = [:]
  static let typeCacheLimit = 1000
  /// The module table `flow`.
  public private(set) var module: LuaReference
  /// The submodules that have been used, by their names in `flow`.
  var openSubmodules: [ByteString: LuaReference] = [:]
  /// The type of watches, once there has been one.
  var openWatchType: LuaObjectType<FileWatch>?
  /// Temporary folders that were made outside of runs.
  var temporaryFolders: [ByteString] = []
  /// Called with a temporary folder and the run that has made it; true if another host keeps the folder. For workers.
  var onTemporaryFolder: ((ByteString, Run) -> Bool)?
  /// The type of Swift objects, once a script has got one.
  var openObjectType: LuaObjectType<AnyObject>?
  /// The types of objects of `flow.http`, once they have been needed.
  var openHTTPTypes: HTTPTypes?
  /// Functions that the module doesn't have yet.
  private var definitions: LuaFields<LuaFunction> = [:]

  /// Ends the process, once its end has been requested and everything is cancelled; see
  /// `LuaVM.terminator`.
  package var onTermination: (() -> Void)?
  /// Called before `onTermination`, when everything is cancelled and files can still be replaced.
  package var onTerminated: (() -> Void)?
  /// Called when that request was taken: only cleanups run afterwards.
  package var onTerminationRequest: (() -> Void)?
  /// Called with true when everything is being cancelled, and with false when that is done.
  package var onCancellation: ((Bool) -> Void)?
  /// Set once the end of the process has been requested.
  var isTerminating = false
  /// Whether everything is being cancelled, as at Ctrl-C.
  var isCancellingEverything = false
  /// Whether the last cleanups before that end are executing.
  var isEndingProcess = false

  /// Called when a script uses the outcome of a run that has none, see `Run.hasOutcome`, or calls a function that has
  /// effects; with `file:line` of the script, and a predicate that says what it needs or calls. A program that sets it
  /// makes runs checked instead of executed: `flow.checking` is true, and programs aren't started. It may end the
  /// process; if it returns, an error of use is raised in the script.
  package var onEndOfCheck: ((_ place: ByteString, _ reason: ByteString) -> Void)?
  /// Whether there may be runs without an outcome.
  var mayLackOutcomes: Bool { onEndOfCheck != nil }

  /// Whether code outside of flows may have effects although runs may lack an outcome, because some ops are executed.
  package var allowsEffects = false

  /// Whether flows are only checked, so that nothing has an effect.
  var isChecking: Bool { onEndOfCheck != nil && !allowsEffects }

  /// The chunk of a session that is running.
  var chunk: SessionChunk?
  /// The maximum number of workers, 0 for none: making an op that runs in a worker is an error then. Set it
  /// before the first one is needed. By default one per core.
  public var workerLimit = ScriptHost.coreCount
  /// The most bytes that each single worker may use, with what is held outside of its state; set it before the
  /// first one is needed. nil, the default, for no such limit: the host and all its workers share the limit of
  /// the host's state, so that a worker may use what the others leave.
  public var workerMemoryLimit: Int?
  /// The memory that the host shares with its workers, once they have been needed.
  package private(set) var memoryBudget: LuaMemoryBudget?
  /// Called when a loop needs workers, before it starts the first one, so that a program may
  /// prepare for more threads. On the thread of the host.
  package var onNeedOfWorkers: (() -> Void)?
  /// The workers of the active loop, once they have been needed.
  var openPool: WorkerPool?
  /// Those of the paused loops, if they have some.
  var waitingPools: [WorkerPool?] = []
  /// The server whose machines execute ops with `thread = "remote"`; nil for none. Set it before the first of them
  /// starts.
  package var remoteSettings: RemoteSettings?
  /// What `flow.remote` takes for fields that it isn't given.
  package var remoteDefaults = RemoteDefaults()
  /// Whether machines have been started that join this server, and no other.
  package var hasStartedMachines = false
  /// The text of `FLOWLUA_REMOTE_KEY` for the server of `flow.remote`.
  package var remoteKey: ByteString?
  /// The effect of a script that uses something deprecated; set it before the first worker is needed, as workers keep
  /// what it was then. Code on other machines reports nothing.
  public var deprecations: Deprecations = .ignored
  /// The texts of those that have been reported.
  var reportedDeprecations: Set<ByteString> = []
  /// The form of summaries for which a script says nothing else.
  package var summaryOptions = SummaryOptions()
  /// Called with a warning: of a machine that can't be used, of a run that can't be kept, of a result that is dropped.
  package var onWarning: ((ByteString) -> Void)?
  /// The first thousand of those that are given once.
  var givenWarnings: Set<ByteString> = []
  /// The jobs on other machines, once there have been some.
  var openRemote: RemoteDispatcher?
  /// The workers of scripts of other machines; see `RemoteMachine`.
  var sessionPools: [WorkerPool] = []
  /// The function of calls with a deadline, once there has been one; see `call(_:_:deadline:)`.
  var openCallRunner: LuaReference?
  /// The results of those calls, by their numbers.
  var callResults: [Int64: [LuaValue]] = [:]
  /// The number of the last one.
  var lastCall: Int64 = 0
  /// The last number given to an object that is sent to workers.
  var lastWorkNumber: UInt64 = 0
  /// The place in logs of the code that it executes: 0 for the main thread, the number of a worker, or the name of one
  /// of another machine.
  var lane: FlowValue = .integer(0)
  /// Whether this is the host of a worker: its module has only the functions that work there.
  let isWorker: Bool
  /// What scripts can use.
  public let configuration: Configuration

  let binder = Binder()
  /// The loop's value before this host: it outlives the host.
  private let previousMakers: Makers
  private(set) var isOpen = false

  private typealias Makers = (
    list: (ContiguousArray<FlowValue>) -> FlowValue,
    failure: (Int, FlowValue, FlowError) -> FlowValue
  )

  /// Adds `flow` to a state: `require "flow"` returns the module.
  ///
  /// - Parameters:
  ///   - vm: The state, whose configuration has the libraries of scripts.
  ///   - loop: The loop on which everything runs.
  ///   - configuration: What scripts can use of the module.
  /// - Throws: A `LuaError` when memory runs out or the state is closed, and a `FlowError` when the loop
  ///   has no descriptor and the system gives none; see `Mailbox.open`.
  public convenience init(
    vm: LuaVM, loop: EventLoop = EventLoop(), configuration: Configuration = Configuration()
  ) throws {
    try self.init(vm: vm, loop: loop, configuration: configuration, isWorker: false)
  }

  init(vm: LuaVM, loop: EventLoop, configuration: Configuration, isWorker: Bool) throws {
    self.vm = vm
    self.configuration = configuration
    activeLoop = loop
    self.isWorker = isWorker
    do throws(SystemError) { try loop.mailbox.open() } catch { throw FlowError.from(error) }
    errorMetatable = try vm.makeErrorMetatable()
    settingMetatable = try vm.makeTable(fields: [("__name", "flow.setting")])
    reductionMetatable = try vm.makeTable(fields: [("__name", "flow.reduction")])
    types = try ObjectTypes(vm: vm, binder: binder)
    let index = try vm.makeFunction(binder.bind(Self.moduleProperty))
    module = try vm.makeTable(
      metatable: try vm.makeTable(fields: [("__index", .reference(index))]))
    previousMakers = (loop.makeList, loop.makeFailure)
    binder.host = .passUnretained(self)
    vm.setErrorMetatable(errorMetatable)
    vm.setSettingMetatable(settingMetatable)
    vm.scheduler = self
    vm.onTermination = { [unowned self] in terminate() }
    loop.onLook = { [unowned self] in if vm.hasRequest { noteRequests() } }
    vm.onInterruption = { [unowned self] in noteInterruption() }
    vm.onMemoryLimit = { [unowned self] in memoryLimitChanged() }
    countMemory()
    loop.codeContext = { [unowned self] in currentOp }
    loop.makeList = { [unowned self] values in self.makeList(values) }
    loop.makeFailure = { [unowned self] index, input, error in
      self.makeFailure(index: index, input: input, error: error)
    }
    do {
      try installModule()
      isOpen = true
    } catch {
      // Otherwise the state would keep a host that was never completed.
      detach()
      throw error
    }
  }

  /// Closes the Lua state. Afterwards nothing of the host can be used. Programs that its scripts
  /// started are stopped; the loop, if it continues to run, kills those that ignore that.
  public func close() {
    guard isOpen else { return }
    isOpen = false
    timeAlarm = nil
    openCanceller?.detach()
    openRemote?.close()
    openRemote = nil
    for pool in openPools { pool.close() }
    openPool = nil
    sessionPools = []
    waitingPools = []
    for loop in waitingLoops + [loop] {
      loop.cancelProcesses(of: ObjectIdentifier(self))
      loop.cancelRequests(of: ObjectIdentifier(self))
    }
    // A finalizer ends no check: it is still refused what has effects.
    if onEndOfCheck != nil { onEndOfCheck = { _, _ in } }
    vm.close()
    removeTemporaryFolders()
    registry.removeAll()
    detach()
  }

  /// Closes the host, for a process that ends next: a server of remote ops has received what was sent to it then, unless
  /// it hasn't taken that for 1 s.
  package func closeAtExit() {
    let remote = openRemote
    close()
    if let remote { _ = loop.run { remote.hasEnded } }
  }

  private func detach() {
    vm.scheduler = nil
    vm.onTermination = nil
    vm.onInterruption = nil
    vm.onMemoryLimit = nil
    onTermination = nil
    onTerminated = nil
    onTerminationRequest = nil
    onCancellation = nil
    onLoopChange = nil
    onEndOfCheck = nil
    keeping = nil
    keepingDefaults = nil
    onKeeping = nil
    onWarning = nil
    deprecations = .ignored
    wrapperFactory = nil
    openCallRunner = nil
    openPrograms = nil
    binder.host = nil
    idleTestLoops = []
    let loop = waitingLoops.first ?? activeLoop
    (loop.makeList, loop.makeFailure) = previousMakers
    loop.memory = nil
    loop.describeOrigin = nil
    loop.onLook = nil
    loop.codeContext = nil
  }

  // MARK: The end of a script

  /// Reports about unobserved failures: the message and, if there is one, the script's traceback.
  public func unobservedFailures() -> [(name: ByteString, error: FlowError)] {
    loop.unobservedFailures.map { ($0.name, $0.error) }
  }

  /// Defines a function of the module, while the module is being made.
  func define(_ name: String, _ function: @escaping BoundFunction) {
    definitions.list.append((name, binder.bind(function)))
  }

  /// Makes a function of the API callable from Lua.
  func bind(_ function: @escaping BoundFunction) -> LuaFunction { binder.bind(function) }

  /// The same for a table of methods.
  func bind(_ methods: LuaFields<BoundMethod>) -> LuaFields<LuaMethod> { binder.bind(methods) }

  /// The workers of the active loop.
  var workers: WorkerPool {
    if let openPool { return openPool }
    let made = makePool()
    if isOpen { openPool = made }
    return made
  }

  /// Makes a pool of workers.
  func makePool() -> WorkerPool {
    if memoryBudget == nil, let budget = LuaMemoryBudget(limit: vm.memoryLimit) {
      memoryBudget = budget
      vm.share(budget)
    }
    var configuration = vm.configuration
    configuration.memoryBudget = memoryBudget
    configuration.memoryLimit = workerMemoryLimit
    if memoryBudget == nil, let limit = vm.memoryLimit {
      // There was no memory for a budget: each worker has the host's limit for itself.
      configuration.memoryLimit = min(limit, workerMemoryLimit ?? limit)
    }
    configuration.instructionLimit = vm.instructionLimit
    onNeedOfWorkers?()
    return WorkerPool(self, size: workerLimit, configuration: configuration)
  }

  /// The workers of all loops.
  var openPools: [WorkerPool] { (waitingPools + [openPool]).compactMap { $0 } + sessionPools }

  private func installModule() throws {
    if !isWorker {
      registry.addBuiltIns = { [unowned self] in registerBuiltInOps() }
      try installOps()
      try installFlows()
      try installGroups()
      try installMachines()
      try installInput()
      installKeeping()
      installSandbox()
      installRemote()
    }
    try installTime()
    try installTasks()
    try installPrograms()
    try installSecrets()
    try installSettings()
    installVersion()
    installDeprecated()
    try vm.set(functions: definitions, in: module)
    definitions = [:]
    // Looked up through the host: a function of the state that captured a value of it would keep
    // the state.
    try vm.preload(
      Self.moduleNames,
      loader: binder.bind { host, call in try host.requiredModule(call) })
  }
}

/// A function of the API, as a function of the host.
typealias BoundFunction = (ScriptHost, LuaCall) throws -> LuaAnswer

/// The same for direct calls.
typealias BoundDirectFunction = (ScriptHost, LuaDirectCall) -> LuaDirectAnswer

/// A function of the API in a table of methods; see `LuaMethod`.
struct BoundMethod {
  let function: BoundFunction
  /// A faster way for most calls; it declines the others.
  let direct: BoundDirectFunction?
  /// Whether the first argument of such a call is a key.
  let takesKey: Bool

  init(
    takesKey: Bool = false, direct: BoundDirectFunction? = nil,
    _ function: @escaping BoundFunction
  ) {
    self.function = function
    self.direct = direct
    self.takesKey = takesKey
  }
}

/// Makes functions of the API callable from Lua. Methods are made before the host is complete, so
/// they look it up here.
final class Binder {
  // Unmanaged: read at every call. The functions live in the state, which the host closes with
  // itself, and nothing calls them afterwards.
  var host: Unmanaged<ScriptHost>?

  func bind(_ function: @escaping BoundFunction) -> LuaFunction {
    { [self] call in
      guard let host else { throw LuaError(.closed, "the script host is closed") }
      return try host._withUnsafeGuaranteedRef { try function($0, call) }
    }
  }

  func bind(_ methods: LuaFields<BoundMethod>) -> LuaFields<LuaMethod> {
    methods.mapValues { method in
      LuaMethod(
        bind(method.function),
        direct: method.direct.map { DirectMethod(self, takesKey: method.takesKey, $0) })
    }
  }

  /// A method's fast way for direct calls.
  private final class DirectMethod: LuaDirectMethod {
    private let binder: Binder
    private let function: BoundDirectFunction

    init(_ binder: Binder, takesKey: Bool, _ function: @escaping BoundDirectFunction) {
      self.binder = binder
      self.function = function
      super.init(takesKey: takesKey)
    }

    override func answer(_ call: LuaDirectCall) -> LuaDirectAnswer {
      guard let host = binder.host else { return call.pass() }
      return host._withUnsafeGuaranteedRef { function($0, call) }
    }
  }
}
