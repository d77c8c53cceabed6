public import FlowEngine
@_spi(Scripting) internal import LuaVM
internal import Synchronization

/// The limits of one request; see `ScriptHost.run(_:data:limits:isolatesGlobals:)`.
///
/// ```swift
/// let limits = RequestLimits(time: .milliseconds(500), instructions: 50_000_000)
/// let data = try await host.run(op, data: ["total": 250], limits: limits, isolatesGlobals: true)
/// ```
public struct RequestLimits: Sendable {
  /// The time that it may take; nil for any time.
  public var time: Duration?
  /// The instructions of Lua that its code may execute; nil for no limit but the host's.
  public var instructions: Int?
  /// The bytes of Lua that its code may hold; nil for no limit but the host's. Each block counts that was allocated, or has
  /// grown, while code of the request ran, until it is freed. Data, logs and outputs outside of Lua count for the host.
  public var memory: Int?

  /// Limits; without arguments none.
  public init(time: Duration? = nil, instructions: Int? = nil, memory: Int? = nil) {
    self.time = time
    self.instructions = instructions
    self.memory = memory
  }
}

extension ScriptHost {
  /// Runs an op for one of many requests of a host, and returns its data: for async code on the host's thread, such as
  /// the body of `ScriptThread.perform`.
  ///
  /// ```swift
  /// let scripts = try await ScriptThread()
  /// let decision = try await scripts.perform { host in
  ///   guard let rule = host.op(in: try host.vm.global("RuleOp")) else { return "no rule" }
  ///   let limits = RequestLimits(time: .milliseconds(500), instructions: 50_000_000)
  ///   let data = try await host.run(rule, data: ["order": 7], limits: limits, isolatesGlobals: true)
  ///   return data.value("decision") ?? "none"
  /// }
  /// ```
  ///
  /// Cancelling the calling task, or the one that has called `perform`, stops this request alone, also while its code is
  /// busy. Its cleanups run. Runs that Swift code of the request starts end with it, too. Code that is busy for more than 10 milliseconds lets other requests run now and then.
  ///
  /// - Parameters:
  ///   - op: The op, flow or machine.
  ///   - data: The initial data.
  ///   - limits: The limits of the request, with all that its ops start. The limits of the host hold, too.
  ///   - isolatesGlobals: Whether globals that its code sets are its own: no other request sees them, and the host's stay
  ///     as they are. Tables that the host's globals refer to are shared. From the first such request on, `next` sees no
  ///     globals in `_G`; `pairs` does.
  /// - Returns: The data at the end.
  /// - Throws: The error of the run, of kind `instructions` when its code has executed more than it may, of kind `memory`
  ///   when it has needed more memory. A `LuaError` without memory for the globals.
  public nonisolated(nonsending) func run(
    _ op: some OpConvertible, data: InitialData = [:], limits: RequestLimits = RequestLimits(),
    isolatesGlobals: Bool = false
  ) async throws -> DataBucket {
    loop.checkThread()
    guard isOpen, !loop.isShutDown else {
      throw FlowError.cancelled(reason: "the script host is closed")
    }
    let requests = service { HostRequests(self) }
    let request = HostRequest(
      instructions: limits.instructions.map { Int64(max(0, $0)) },
      memory: try limits.memory.map { ($0, try LuaAccount(limit: $0)) },
      globals: isolatesGlobals ? try requests.makeGlobals() : nil)
    let canceller = canceller
    let cancel = { @Sendable [isCancelled = request.isCancelled] in
      isCancelled.set()
      canceller.notice()
    }
    // While the code is busy, the calling task doesn't learn that it is cancelled.
    let watch = loop.watchCaller(cancel)
    defer { watch?.end() }
    // Of all attempts together, which a timeout of the op isn't.
    let limit = limits.time.map { TimeLimit($0, on: loop) }
    defer { limit?.end() }
    // Swift code that its ops call may call functions of scripts in turn.
    let run = HostRequest.$current.withValue(request) {
      op.makeOp().start(
        on: loop, data: data.entries, owner: nil,
        adopt: {
          limit?.tasks.add($0)
          requests.begin(request, $0)
        })
    }
    defer { requests.end(request) }
    limit?.begin()
    return try await withTaskCancellationHandler {
      try await run.value(cancelsTask: true)
    } onCancel: {
      cancel()
    }
  }
}

/// A flag that any thread sets.
private final class Signal: Sendable {
  private let value = Atomic<Bool>(false)

  var isSet: Bool { value.load(ordering: .acquiring) }

  func set() { value.store(true, ordering: .releasing) }
}

/// A request that a host executes.
// Unchecked: a task-local value takes it along, also to other threads, but only the thread of its host looks into it.
final class HostRequest: @unchecked Sendable {
  /// The request whose code has called the running Swift code.
  @TaskLocal static var current: HostRequest?

  fileprivate let isCancelled = Signal()
  private let thread = FlowEventLoop.Identity.current
  /// The limit of instructions, and how many of them are left; nil for none.
  fileprivate let limit: Int64?
  fileprivate var instructionsLeft: Int64
  /// The limit of memory, and its account.
  fileprivate var memory: (limit: Int, account: LuaAccount)?
  /// The table of its own globals; nil for those of the host.
  fileprivate var globals: LuaReference?
  /// Set while it runs.
  fileprivate var run: Run?
  fileprivate var isStopped = false

  fileprivate init(
    instructions: Int64?, memory: (limit: Int, account: LuaAccount)?, globals: LuaReference?
  ) {
    limit = instructions
    instructionsLeft = instructions ?? 0
    self.memory = memory
    self.globals = globals
  }

  /// Makes a task belong to the request, if this is one of the host that runs.
  @discardableResult
  func adopt(_ task: AnyFlowTask, _ host: ScriptHost) -> Bool {
    guard thread.isCurrentThread, let run, run.loop === host.loop,
      host.existing(HostRequests.self) != nil
    else { return false }
    run.adopt(task)
    return true
  }
}

/// The requests of a host: it gives the running code the globals and the limit of its request.
final class HostRequests: HostService, CodeWatch {
  // Unowned: a service ends with its host.
  private unowned let host: ScriptHost
  /// By the ids of their runs.
  private var open: [UInt64: HostRequest] = [:]
  /// The request of the running code.
  private var active: HostRequest?
  /// The instructions that the host had left when the code of the active request continued, and those that it got.
  private var granted: (host: Int64, request: Int64)?
  private var countsInstructions = false
  private let turns: RequestTurns
  private var globals: GlobalsSwitch?

  init(_ host: ScriptHost) {
    self.host = host
    turns = RequestTurns(host.vm.attention)
    host.loop.adoptRuns(for: self) { [weak self] in self?.adopt($0) == true }
  }

  /// Makes a run that Swift code has started alone belong to the request that the code belongs to.
  ///
  /// - Returns: Whether there is one.
  private func adopt(_ run: Run) -> Bool {
    (HostRequest.current ?? active)?.adopt(run, host) == true
  }

  fileprivate func makeGlobals() throws -> LuaReference {
    if let globals { return try globals.make() }
    let made = try GlobalsSwitch(host.vm)
    globals = made
    return try made.make()
  }

  fileprivate func begin(_ request: HostRequest, _ run: Run) {
    request.run = run
    open[run.id] = request
    if request.limit != nil, !countsInstructions {
      countsInstructions = true
      host.vm.countInstructions()
    }
    host.codeWatch = self
  }

  fileprivate func end(_ request: HostRequest) {
    if let run = request.run { open[run.id] = nil }
    request.run = nil
    if active === request { activate(nil) }
    (request.globals, request.memory) = (nil, nil)
    if open.isEmpty { host.codeWatch = nil }
  }

  /// Whether code of a request is running.
  var isOfRequest: Bool { active != nil }

  func codeChanges() {
    let request = host.outermostRun.flatMap { open[$0.id] }
    if request !== active { activate(request) }
  }

  private func activate(_ request: HostRequest?) {
    let vm = host.vm
    if let granted, let active {
      let left = vm.instructionsLeft
      active.instructionsLeft = left
      vm.instructionsLeft = granted.host - (granted.request - left)
    }
    granted = nil
    // The switch of globals may need memory, which no limit of a request may refuse.
    vm.use(nil)
    if request != nil { turns.begin() } else { turns.end() }
    if let globals, active?.globals !== request?.globals { globals.use(request?.globals) }
    vm.use(request?.memory?.account)
    active = request
    guard let request, request.limit != nil else { return }
    let left = vm.instructionsLeft
    let share = min(left, request.instructionsLeft)
    granted = (left, share)
    vm.instructionsLeft = share
  }

  func error(_ error: FlowError, of owner: FiberOwner) -> FlowError {
    // Lua itself knows no limit of a request, and raises both errors as one.
    guard error.kind == .memory || error.kind == .instructions,
      let request = owner.outermostRun.flatMap({ open[$0.id] })
    else { return error }
    if let limit = request.limit,
      (request === active ? host.vm.instructionsLeft : request.instructionsLeft) == 0
    {
      return FlowError(
        .instructions, "instruction limit of \(limit) exceeded", op: error.op,
        traceback: error.traceback)
    }
    guard error.kind == .memory, let (limit, account) = request.memory, account.hasRefused else {
      return error
    }
    return FlowError(
      .memory, "memory limit of \(limit) bytes exceeded", op: error.op, traceback: error.traceback)
  }

  func isStopped(_ owner: FiberOwner) -> Bool {
    owner.outermostRun.flatMap { open[$0.id] }?.isStopped == true
  }

  func outside(_ body: () -> Bool) -> Bool {
    HostRequest.$current.withValue(nil, operation: body)
  }

  /// Lets the running code wait if it is busy for long; returns whether it belongs to a request.
  func giveTurn() -> Bool {
    let isDue = turns.take()
    guard active != nil else { return false }
    if isDue, !host.executesCleanup { host.vm.pause(at: TurnWait()) }
    return true
  }

  /// Stops the requests that were cancelled.
  ///
  /// - Parameter isInCode: Whether code of the state is executing, and has called this.
  func stopCancelled(isInCode: Bool) {
    for request in open.values where request.isCancelled.isSet && !request.isStopped {
      guard let run = request.run else { continue }
      request.isStopped = true
      run.stop(.cancelled())
      guard isInCode, host.vm.runsScheduledCoroutine, active === request else { continue }
      // Code that hasn't waited yet isn't stopped with its owner. No stop reaches what a cleanup has started.
      let tasks = host.tasksOfCode
      for task in tasks where isReached(task, in: run) { task.stop(.cancelled()) }
      if let innermost = tasks.last, !isReached(innermost, in: run) { continue }
      if host.executesCleanup {
        host.limitCleanup()
      } else {
        host.vm.watchActivity(
          deadline: LuaVM.monotonicTime, grace: host.closeGrace(host.currentOp?.grace))
      }
    }
  }

  /// Whether a stop of a request's run reaches a task of its code.
  private func isReached(_ task: AnyFlowTask, in run: Run) -> Bool {
    task === run || task.owner?.stopError != nil
  }

  func hostWillClose(_ host: ScriptHost) {
    turns.close()
    host.loop.adoptRuns(for: self, nil)
    host.vm.use(nil)
    host.codeWatch = nil
    (active, globals) = (nil, nil)
  }
}

/// Globals of requests over those of a host.
///
/// The table of globals itself is emptied, so that Lua looks for each global by its metatable: that leads to the table of
/// the request whose code runs, and from there to the host's globals.
private final class GlobalsSwitch {
  private let vm: LuaVM
  private let metatable: LuaReference
  private let base: LuaReference
  private let maker: LuaReference

  private static let code: ByteString = """
    local globals = ...
    local next, getmetatable, setmetatable = next, getmetatable, setmetatable
    local base, switch = {}, {}
    for name, value in next, globals do base[name] = value end
    for name in next, base do globals[name] = nil end
    setmetatable(base, getmetatable(globals))
    switch.__index, switch.__newindex, switch.__metatable = base, base, false
    function switch.__pairs()
      local all = {}
      for name, value in next, base do all[name] = value end
      for name, value in next, switch.__newindex do all[name] = value end
      return next, all, nil
    end
    setmetatable(globals, switch)
    local set, get = rawset, rawget
    if set then
      function base.rawset(t, k, v)
        if t ~= globals then return set(t, k, v) end
        set(switch.__newindex, k, v)
        return t
      end
    end
    if get then
      function base.rawget(t, k)
        if t ~= globals then return get(t, k) end
        local v = get(switch.__newindex, k)
        if v == nil then v = get(base, k) end
        return v
      end
    end
    local own = { __index = base, __metatable = false }
    return switch, base, function() return setmetatable({}, own) end
    """

  init(_ vm: LuaVM) throws {
    self.vm = vm
    let chunk = try vm.loadOwn(Self.code, name: "=[flow]")
    let made = try vm.call(chunk, [.reference(try vm.globals())])
    guard made.count == 3, case .reference(let metatable) = made[0],
      case .reference(let base) = made[1], case .reference(let maker) = made[2]
    else { throw LuaError(.runtime, "no globals for requests were made") }
    (self.metatable, self.base, self.maker) = (metatable, base, maker)
  }

  func make() throws -> LuaReference { try vm.convert(try vm.call(maker).first ?? .nil) }

  /// Lets the running code use a request's globals; nil: those of the host.
  func use(_ globals: LuaReference?) {
    let table = LuaValue.reference(globals ?? base)
    // The fields are there, so that this needs no memory.
    try? vm.set(table, "__index", in: metatable)
    try? vm.set(table, "__newindex", in: metatable)
  }
}
