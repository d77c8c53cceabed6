public import FlowEngine
public import LuaVM

/// The engine as scripts see it: it puts the module `flow` into a Lua state and runs the ops, the
/// callbacks and the waits of scripts on an event loop.
///
/// It belongs to the thread that made it, and a loop has one host at a time. Close it when done:
/// until then state and host keep each other alive.
public final class ScriptHost {
  /// The Lua state.
  public let vm: LuaVM
  /// The loop that everything runs on: the host's own, and during `testing.run` the test's.
  public var loop: EventLoop { activeLoop }
  // Not public, because the attribute is lost on the way to another module.
  @exclusivity(unchecked) var activeLoop: EventLoop
  /// The loops that stand still for the active one, the host's own first.
  var waitingLoops: [EventLoop] = []
  /// Loops for further tests, on which nothing is pending.
  var idleTestLoops: [EventLoop] = []
  /// Called whenever another loop is the active one, so that signals can wake that.
  public var onLoopChange: ((EventLoop) -> Void)?

  /// The op whose code runs now; nil outside of ops. Set around each stretch of its coroutine.
  var currentOp: OpContext? { current.op?.takeUnretainedValue() }
  /// The run whose `will_start` or predicate runs now.
  var currentRun: Run? { current.run?.takeUnretainedValue() }
  /// The task whose function runs now; nil in ops and callbacks.
  var currentTask: ScriptTask? { current.task?.takeUnretainedValue() }
  @exclusivity(unchecked) var current = Current()
  /// The coroutine that has gone on last after a wait, while it runs. Unmanaged, as in `Current`: the loop
  /// that runs it holds it.
  @exclusivity(unchecked) var fiber: Unmanaged<Fiber>?
  /// Whether the `__close`s that run belong to a coroutine whose grace is over: they may not wait.
  var cutsCloses = false

  /// What the code that runs now belongs to.
  struct Current {
    // Unmanaged, because retains would cost more than the rest. Safe: the strand that runs the op
    // holds the context and the run, and whoever sets them sets them back.
    var op: Unmanaged<OpContext>?
    var run: Unmanaged<Run>?
    /// The task whose function runs, which holds it; nil in ops and callbacks.
    var task: Unmanaged<ScriptTask>?
  }

  let types: ObjectTypes
  /// The ops in `flow.ops`.
  let registry = OpRegistry()
  /// The metatable of error tables.
  let errorMetatable: LuaReference
  let keptErrors = KeptErrors()
  /// The metatable of what `flow.continue`, `flow.finish` and `flow.retry` return.
  let reductionMetatable: LuaReference
  /// Makes the Lua functions of ops around others; made with the first of them.
  var wrapperFactory: LuaReference?
  /// The metatable of `run.data`, once there has been need of it.
  var viewMetatable: LuaReference?
  /// Parsed type texts by their spelling: scripts use few of them often.
  var typeCache: [ByteString: ValueType] = [:]
  static let typeCacheLimit = 1000
  /// The module table `flow`.
  public private(set) var module: LuaReference
  /// The module `flow.testing`, once it was asked for.
  var openTestingModule: LuaReference?
  /// Functions of the module that it doesn't have yet.
  private var definitions: LuaFields<LuaFunction> = [:]

  /// Ends the process, once it has been asked to end and all is cancelled; see `LuaVM.terminator`.
  public var onTermination: (() -> Void)?
  /// Called when the request for that was taken: only cleanups run afterwards.
  public var onTerminationRequest: (() -> Void)?
  /// Called when all is being cancelled, with true, and when that is done.
  public var onCancellation: ((Bool) -> Void)?
  /// Set once the process has been asked to end.
  var isTerminating = false

  /// Called when a script asks what became of a run that was checked only, see `Run.isSkipped`; with
  /// `file:line` of the script. A program that sets it says that runs are checked instead of executed:
  /// `flow.checking` is true, and programs aren't started. It may end the process; if it returns, an
  /// error of use is raised in the script.
  public var onNeedOfOutcome: ((Run, ByteString) -> Void)?
  /// Whether runs are checked instead of executed.
  var isChecking: Bool { onNeedOfOutcome != nil }

  /// The chunk of a session that runs now.
  var chunk: SessionChunk?
  /// How many workers there are at most; set it before the first one is needed. By default one for
  /// each core.
  public var workerLimit = ScriptHost.coreCount
  /// The most bytes that the state of each worker may hold; set it before the first one is needed. By
  /// default as much as the state of the host.
  public lazy var workerMemoryLimit: Int? = vm.memoryLimit
  /// Called when there is need of workers, before the first one of a loop is started: a program may
  /// prepare itself for more threads. On the thread of the host.
  public var onNeedOfWorkers: (() -> Void)?
  /// The workers of the active loop, once there has been need of some.
  var openPool: WorkerPool?
  /// Those of the loops that stand still, as far as they have some.
  var waitingPools: [WorkerPool?] = []
  /// Numbers what workers are told of.
  var lastWorkNumber: UInt64 = 0
  /// Whether this is the host of a worker: its module has what can be done there.
  let isWorker: Bool

  private let binder = Binder()
  /// What the loop had before this host: it outlives the host.
  private let previousMakers: Makers
  private var isOpen = false

  private typealias Makers = (
    list: (ContiguousArray<Value>) -> Value, failure: (Int, Value, FlowError) -> Value
  )

  /// Brings `flow` into a state: `require "flow"` gives the module.
  ///
  /// Throws a `LuaError` when memory runs out or the state is closed, and a `FlowError` when the loop
  /// has no descriptor and the system gives none; see `Mailbox.open`.
  public convenience init(vm: LuaVM, loop: EventLoop = EventLoop()) throws {
    try self.init(vm: vm, loop: loop, isWorker: false)
  }

  init(vm: LuaVM, loop: EventLoop, isWorker: Bool) throws {
    self.vm = vm
    activeLoop = loop
    self.isWorker = isWorker
    try loop.mailbox.open()
    errorMetatable = try vm.makeErrorMetatable()
    reductionMetatable = try vm.makeTable(fields: [("__name", "flow.reduction")])
    types = try ObjectTypes(vm: vm, binder: binder)
    let index = try vm.makeFunction(binder.bind(Self.moduleProperty))
    module = try vm.makeTable(
      metatable: try vm.makeTable(fields: [("__index", .reference(index))]))
    previousMakers = (loop.makeList, loop.makeFailure)
    binder.host = .passUnretained(self)
    vm.setErrorMetatable(errorMetatable)
    vm.scheduler = self
    vm.onTermination = { [unowned self] in terminate() }
    loop.onLook = { [unowned self] in if vm.hasRequest { cancelForRequest() } }
    vm.onInterruption = { [unowned self] in noteInterruption() }
    loop.makeList = { [unowned self] values in self.makeList(values) }
    loop.makeFailure = { [unowned self] index, input, error in
      self.makeFailure(index: index, input: input, error: error)
    }
    do {
      try installModule()
      isOpen = true
    } catch {
      // The state would keep the host that never came to be.
      detach()
      throw error
    }
  }

  /// Closes the Lua state. Afterwards nothing of the host can be used. Programs that its scripts
  /// started are asked to stop; the loop, if it goes on, kills those that don't.
  public func close() {
    guard isOpen else { return }
    isOpen = false
    for pool in openPools { pool.close() }
    openPool = nil
    waitingPools = []
    for loop in waitingLoops + [loop] { loop.cancelProcesses(of: ObjectIdentifier(self)) }
    vm.close()
    registry.removeAll()
    detach()
  }

  private func detach() {
    vm.scheduler = nil
    vm.onTermination = nil
    vm.onInterruption = nil
    onTermination = nil
    onTerminationRequest = nil
    onCancellation = nil
    onLoopChange = nil
    onNeedOfOutcome = nil
    wrapperFactory = nil
    binder.host = nil
    idleTestLoops = []
    let loop = waitingLoops.first ?? activeLoop
    (loop.makeList, loop.makeFailure) = previousMakers
    loop.describeOrigin = nil
    loop.onLook = nil
  }

  // MARK: The end of a script

  /// What is to be told about failures that nobody observed: message and, where there is one, the
  /// script's traceback.
  public func unobservedFailures() -> [(name: ByteString, error: FlowError)] {
    loop.unobservedFailures.map { ($0.name, $0.error) }
  }

  /// Defines a function of the module, while that is made.
  func define(_ name: String, _ function: @escaping BoundFunction) {
    definitions.list.append((name: name, value: binder.bind(function)))
  }

  /// Makes a function of the API callable from Lua.
  func bind(_ function: @escaping BoundFunction) -> LuaFunction { binder.bind(function) }

  /// The workers of the active loop.
  var workers: WorkerPool {
    if let openPool { return openPool }
    var configuration = vm.configuration
    configuration.memoryLimit = workerMemoryLimit
    onNeedOfWorkers?()
    let made = WorkerPool(self, size: workerLimit, configuration: configuration)
    if isOpen { openPool = made }
    return made
  }

  /// The workers of all loops.
  var openPools: [WorkerPool] { (waitingPools + [openPool]).compactMap { $0 } }

  private func installModule() throws {
    if !isWorker {
      registry.addBuiltIns = { [unowned self] in registerBuiltInOps() }
      try installOps()
      try installFlows()
      try installGroups()
      try installMachines()
    }
    try installTime()
    try installTasks()
    try installPrograms()
    try installSecrets()
    try vm.set(functions: definitions, in: module)
    definitions = [:]
    // Found by the host: a function of the state that held a value of it would keep the state.
    try vm.preload(
      "flow", "flowlua",
      loader: binder.bind { host, call in call.answer(.reference(host.module)) })
    if isWorker { return }
    try vm.preload(
      "flow.testing", "flowlua.testing",
      loader: binder.bind { host, call in call.answer(.reference(try host.testingModule())) })
  }
}

/// A function of the API, written against the host.
typealias BoundFunction = (ScriptHost, LuaCall) throws -> LuaAnswer

/// The same for keyed calls.
typealias BoundKeyedFunction = (ScriptHost, LuaKeyedCall) -> LuaKeyedAnswer

/// The same for calls with an object.
typealias BoundObjectFunction = (ScriptHost, LuaObjectCall) -> LuaObjectAnswer

/// A function of the API in a table of methods; see `LuaMethod`.
struct BoundMethod {
  let function: BoundFunction
  /// A faster way for most calls; it does nothing where it passes.
  let keyed: BoundKeyedFunction?
  /// The same for another kind of calls.
  let direct: BoundObjectFunction?

  init(
    keyed: BoundKeyedFunction? = nil, direct: BoundObjectFunction? = nil,
    _ function: @escaping BoundFunction
  ) {
    self.function = function
    self.keyed = keyed
    self.direct = direct
  }
}

/// Makes functions of the API callable from Lua. Methods are made before the host stands, so they
/// find it here.
final class Binder {
  // Unmanaged: read at every call. The functions live in the state, which the host closes with itself,
  // and nothing calls them afterwards.
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
        bind(method.function), keyed: method.keyed.map { KeyedMethod(self, $0) },
        direct: method.direct.map { DirectMethod(self, $0) })
    }
  }

  /// A method's way for keyed calls.
  private final class KeyedMethod: LuaKeyedMethod {
    private let binder: Binder
    private let function: BoundKeyedFunction

    init(_ binder: Binder, _ function: @escaping BoundKeyedFunction) {
      self.binder = binder
      self.function = function
    }

    override func answer(_ call: LuaKeyedCall) -> LuaKeyedAnswer {
      guard let host = binder.host else { return call.pass() }
      return host._withUnsafeGuaranteedRef { function($0, call) }
    }
  }

  /// A method's way for calls with an object.
  private final class DirectMethod: LuaObjectMethod {
    private let binder: Binder
    private let function: BoundObjectFunction

    init(_ binder: Binder, _ function: @escaping BoundObjectFunction) {
      self.binder = binder
      self.function = function
    }

    override func answer(_ call: LuaObjectCall) -> LuaObjectAnswer {
      guard let host = binder.host else { return call.pass() }
      return host._withUnsafeGuaranteedRef { function($0, call) }
    }
  }
}
