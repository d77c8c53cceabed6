public import FlowEngine
internal import FlowHTTP
@_spi(Scripting) public import LuaVM

/// The engine for scripts: it adds the module `flow` to a Lua state and runs the ops, callbacks and
/// waits of scripts on an event loop.
///
/// It belongs to the thread that made it, and a loop has one host at a time. Close it when done:
/// until then state and host keep each other alive.
///
/// ```swift
/// let host = try ScriptHost(vm: LuaVM())
/// defer { host.close() }
/// host.register(UploadOp())
/// let chunk = try host.vm.load("return require('flow').ops.UploadOp", name: "upload.lua")
/// if let upload = host.op(in: try host.vm.call(chunk)[0]) {
///   print(try await host.run(upload, limits: RequestLimits(time: .seconds(10))))
/// }
/// ```
public final class ScriptHost {
  /// The Lua state.
  public let vm: LuaVM
  /// The loop on which everything runs: the host's own, or during `testing.run` the test's.
  public var loop: FlowEventLoop { activeLoop }
  // Not public, because the attribute is lost on the way to another module.
  @exclusivity(unchecked) var activeLoop: FlowEventLoop
  /// The loops that are paused while another one is active, the host's own first.
  var waitingLoops: [FlowEventLoop] = []
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
  @exclusivity(unchecked) var current = Current() {
    didSet { codeWatch?.codeChanges() }
  }
  /// Gives the running code what belongs to its request; nil without such requests.
  @exclusivity(unchecked) var codeWatch: (any CodeWatch)?
  /// The coroutine that was last continued after a wait, while it runs. Unmanaged, like `Current`'s:
  /// the loop that runs it keeps it.
  @exclusivity(unchecked) var fiber: Unmanaged<Fiber>?
  /// The waits of the main chunk, and below C functions; see `pump`.
  var waitsInPlace = WaitsInPlace()
  /// The functions that the engine has called in place, the innermost one last.
  var callsInPlace: [FunctionInPlace] = []
  /// The secrets that were made outside of runs and tasks; nil for none.
  var secretHolds: SecretHolds?
  /// The state for the end of the script.
  var ending = EndState()
  /// The callbacks of the program that made the host.
  package var events = HostEvents()
  /// How runs are checked instead of executed; nil: they are executed.
  package var checking: Checking?

  /// The callbacks of a program for events in its host: called on the thread of the host, until the host
  /// is closed.
  package struct HostEvents {
    /// Another loop becomes active, so that signals can wake it.
    package var onLoopChange: ((FlowEventLoop) -> Void)?
    /// A loop needs workers, before it starts the first one, so that a program may prepare for more threads.
    package var onNeedOfWorkers: (() -> Void)?
    /// A warning: of a machine that can't be used, of a run that can't be kept, of a result that is dropped.
    package var onWarning: ((ByteString) -> Void)?
    /// With true when everything is being cancelled, and with false when that is done.
    package var onCancellation: ((Bool) -> Void)?
    /// The command line of the script, for `flow.main`; nil where scripts have none.
    package var commandLine: ScriptCommandLine?
    /// The script wants to stop by itself at the first signal; nil where it learns of none.
    package var onStopFunction: (() -> Void)?
    /// Nothing but messages can continue the script; returns whether the process ends because of that, as at a signal.
    package var onOnlyMessages: ((MessageCenter) -> Bool)?
    /// With true when the main chunk, or one of a session, begins to wait, and with false when it continues.
    package var onMainWait: ((Bool) -> Void)?
    /// The end of the process was requested: only cleanups run afterwards.
    package var onTerminationRequest: (() -> Void)?
    /// Everything is cancelled, and files can still be replaced.
    package var onTerminated: (() -> Void)?
    /// Ends the process; see `LuaVM.terminator`.
    package var onTermination: (() -> Void)?
  }

  /// The owners of the running code.
  struct Current {
    // Unmanaged, because retains would cost more than the rest. Safe: the execution that runs the op
    // keeps the context and the run, and the code that sets them resets them.
    var op: Unmanaged<OpContext>?
    var run: Unmanaged<Run>?
    /// The task whose function is running, which keeps it; nil in ops and callbacks.
    var task: Unmanaged<ScriptTask>?
  }

  /// The kinds of objects that scripts hold; see `types`. Their file is on a floor above this one, and each call of a method
  /// needs them, so that they aren't looked up as a service.
  let objectTypes: AnyObject
  /// The services of the files above this one; nil once the host was closed.
  // Unchecked exclusivity: no access lasts into a call.
  @exclusivity(unchecked) var services: HostServices? = HostServices()
  /// The tasks that the running chunk of a session has started; nil outside of sessions.
  @exclusivity(unchecked) var chunkTasks: OwnedTasks?
  /// Whether logs have each wait of an op's or callback's code, for traces; of workers, those that start from
  /// now on. It doubles the logs of ops that wait.
  package var logsWaits: Bool {
    get { waitBegins != nil }
    set { waitBegins = newValue ? [:] : nil }
  }
  /// When the fibers that wait began to; nil unless waits are logged.
  // Unchecked exclusivity, because each wait looks: see HotPath.swift.
  @exclusivity(unchecked) var waitBegins: [ObjectIdentifier: Int64]?
  /// The module table `flow`.
  package private(set) var module: LuaReference
  /// The place in logs of the code that it executes: 0 for the main thread, the number of a worker, or the name of one
  /// of another node.
  var lane: FlowValue = .integer(0)
  /// Whether this is the host of a worker: its module has only the functions that work there.
  let isWorker: Bool

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
  ///   - vm: The state. The permissions of its configuration are also those for the module.
  ///   - loop: The loop on which everything runs.
  /// - Throws: A `LuaError` when memory runs out or the state is closed, and a `FlowError` when the loop
  ///   has no descriptor and the system gives none; see `LoopMailbox.open`.
  public convenience init(vm: LuaVM, loop: FlowEventLoop = FlowEventLoop()) throws {
    try self.init(vm: vm, loop: loop, isWorker: false)
  }

  init(vm: LuaVM, loop: FlowEventLoop, isWorker: Bool) throws {
    self.vm = vm
    activeLoop = loop
    self.isWorker = isWorker
    do throws(SystemError) { try loop.mailbox.open() } catch { throw FlowError.from(error) }
    objectTypes = try Self.makeObjectTypes(vm, binder)
    let index = try vm.makeFunction(binder.bind(Self.moduleProperty))
    module = try vm.makeTable(
      metatable: try vm.makeTable(fields: [("__index", .reference(index))]))
    previousMakers = (loop.makeList, loop.makeFailure)
    binder.host = .passUnretained(self)
    vm.scheduler = self
    vm.onTermination = { [unowned self] in terminate() }
    loop.onLook = { [unowned self] in if vm.hasRequest { noteRequests() } }
    vm.onInterruption = { [unowned self] in noteInterruption() }
    vm.onThrownError = { [unowned self] in
      self.loop.errorMapper == nil ? $0 : FlowError.from($0, on: self.loop)
    }
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
  ///
  /// ```swift
  /// let host = try ScriptHost(vm: LuaVM())
  /// defer { host.close() }
  /// ```
  public func close() {
    guard isOpen else { return }
    isOpen = false
    for service in services?.latestFirst ?? [] { service.hostWillClose(self) }
    for loop in waitingLoops + [loop] {
      loop.cancelProcesses(of: ObjectIdentifier(self))
      loop.cancelRequests(of: ObjectIdentifier(self))
    }
    // A finalizer ends no check: it is still refused what has effects.
    checking?.onEnd = { _, _ in }
    vm.close()
    for service in services?.latestFirst ?? [] { service.hostDidClose(self) }
    detach()
  }

  private func detach() {
    vm.scheduler = nil
    vm.onTermination = nil
    vm.onInterruption = nil
    vm.onThrownError = nil
    vm.onMemoryLimit = nil
    services = nil
    events = HostEvents()
    checking = nil
    binder.host = nil
    // Each of them holds the binder.
    binder.definitions = [:]
    let loop = waitingLoops.first ?? activeLoop
    (loop.makeList, loop.makeFailure) = previousMakers
    loop.memory = nil
    loop.describeOrigin = nil
    loop.onLeftProgram = nil
    loop.onLook = nil
    loop.codeContext = nil
  }

  // MARK: The end of a script

  /// Reports about unobserved failures: the message and, if there is one, the script's traceback.
  package func unobservedFailures() -> [(name: ByteString, error: FlowError)] {
    loop.unobservedFailures.map { ($0.name, $0.error) }
  }

  /// Defines a function of the module, while the module is being made.
  func define(_ name: String, _ function: @escaping BoundFunction) {
    binder.definitions.list.append((name, binder.bind(function)))
  }

  /// Makes a function of the API callable from Lua.
  func bind(_ function: @escaping BoundFunction) -> LuaFunction { binder.bind(function) }

  /// Makes a table of methods callable from Lua.
  func bind(_ methods: LuaFields<BoundMethod>) -> LuaFields<LuaMethod> { binder.bind(methods) }

  private func installModule() throws {
    try installBindings()
    try vm.set(functions: binder.definitions, in: module)
    binder.definitions = [:]
    // Looked up through the host: a function of the state that captured a value of it would keep
    // the state.
    try vm.preload(
      Self.moduleNames,
      loader: binder.bind { host, call in try host.requiredModule(call) })
  }
}

/// An observer of changes of the running code.
protocol CodeWatch: AnyObject {
  /// Other code runs from now on; see `ScriptHost.current`.
  func codeChanges()
  /// The error with which code has failed, as the request of its owner shows it.
  func error(_ error: FlowError, of owner: FiberOwner) -> FlowError
  /// Whether the request of the owner was cancelled, so that its code stops at once.
  func isStopped(_ owner: FiberOwner) -> Bool
  /// Runs code that belongs to no request.
  func outside(_ body: () -> Bool) -> Bool
}

/// The work of a program for a script that has commands.
package struct ScriptCommandLine {
  /// Whether completions of the commands are printed, and nothing runs.
  package let completes: Bool
  /// Prints a text and ends the process: help with the status 0, a mistake with another.
  package let end: (_ text: ByteString, _ status: Int32) -> Void

  package init(completes: Bool, end: @escaping (_ text: ByteString, _ status: Int32) -> Void) {
    self.completes = completes
    self.end = end
  }
}

/// A function of the API, as a function of the host.
typealias BoundFunction = (ScriptHost, LuaCall) throws -> LuaAnswer

/// A function of the API for direct calls.
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
  /// Functions that the module doesn't have yet.
  fileprivate var definitions: LuaFields<LuaFunction> = [:]

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
