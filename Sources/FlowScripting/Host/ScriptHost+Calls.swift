@_spi(Scripting) public import FlowEngine
@_spi(Scripting) public import LuaVM

/// Calls of Lua functions that may wait.
extension ScriptHost {
  /// Calls a Lua function, which may wait, and returns its first result: for async code on the host's thread, such
  /// as the body of `ScriptThread.perform`.
  ///
  /// ```swift
  /// let scripts = try await ScriptThread()
  /// let price = try await scripts.perform { host in
  ///   let function: LuaReference = try host.vm.convert(try host.vm.global("price"))
  ///   return try await host.call(function, ["apples", 3], as: Double.self)
  /// }
  /// ```
  ///
  /// Each call is a coroutine of its own: any number of calls wait at a time, and none waits for another one. Cancelling
  /// the calling task stops the function, also while it waits, with what it waits for; its cleanups run before the call
  /// ends. A function that is busy is stopped by `ScriptCanceller` and by time limits, such as the deadline of
  /// `call(_:_:deadline:)`.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - arguments: The arguments, of any types that can be converted.
  ///   - type: The type of the first result. Further results are dropped, and a missing one is nil.
  /// - Returns: The result.
  /// - Throws: A `FlowError`: the one that the function has raised, of kind `cancelled` when the calling task was cancelled
  ///   or the host was closed, `stalled` when nothing can end the function's wait. A `LuaConversionError` for a result of
  ///   another type.
  public nonisolated(nonsending) func call<Result: LuaValueConvertible>(
    _ function: LuaReference, _ arguments: [any LuaValueConvertible] = [], as type: Result.Type
  ) async throws -> Result {
    try vm.convert(try await call(function, arguments).first ?? .nil)
  }

  /// Calls a Lua function, which may wait, and drops its results.
  public nonisolated(nonsending) func call(
    _ function: LuaReference, _ arguments: [any LuaValueConvertible] = [], as type: Void.Type
  ) async throws {
    _ = try await call(function, arguments)
  }

  /// Calls a Lua function, which may wait, and returns all its results.
  public nonisolated(nonsending) func call(
    _ function: LuaReference, _ arguments: [any LuaValueConvertible] = []
  ) async throws -> [LuaValue] {
    try await call(function, arguments, time: nil)
  }

  /// Calls a Lua function, which may wait, and stops it at a deadline: also code that is busy, or that catches errors.
  ///
  /// ```swift
  /// let results = try await host.call(function, ["apples", 3], deadline: .now.advanced(by: .seconds(2)))
  /// ```
  ///
  /// Each call is a coroutine of its own, and none waits for another one. At the deadline what the function has started ends,
  /// too. Its cleanups have the loop's grace period. On a loop with a virtual clock the deadline is so much later on that
  /// clock as it is later than the present time.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - arguments: The arguments, of any types that can be converted.
  ///   - deadline: When it has to have ended.
  /// - Returns: All its results.
  /// - Throws: A `FlowError`: of kind `timeout` at the deadline, `cancelled` when the calling task was cancelled or the host
  ///   was closed, otherwise what the function has raised.
  public nonisolated(nonsending) func call(
    _ function: LuaReference, _ arguments: [any LuaValueConvertible] = [],
    deadline: ContinuousClock.Instant
  ) async throws -> [LuaValue] {
    try await call(function, arguments, time: ContinuousClock.now.duration(to: deadline))
  }

  private nonisolated(nonsending) func call(
    _ function: LuaReference, _ arguments: [any LuaValueConvertible], time: Duration?
  ) async throws -> [LuaValue] {
    loop.checkThread()
    let calls = try limitedCalls()
    let values = try arguments.map { try $0.luaValue(in: vm) }
    let runner = try vm.uniqueReference(to: calls.runner)
    let id = calls.begin()
    // It belongs to no code that waits below on the stack.
    let outer = current
    current = Current()
    let task = SpawnedTask(self, runner, [.integer(id), .reference(function)] + values)
    task.markObserved()
    // Code of a request that calls it in Swift.
    HostRequest.current?.adopt(task, self)
    if let time { task.limit(to: time) }
    calls.open[id] = task
    defer {
      calls.open[id] = nil
      calls.end(id)
    }
    task.beginInCallersTask()
    current = outer
    try await task.wait(cancelsTask: true)
    if let error = task.error { throw error }
    return calls.end(id) ?? []
  }

  /// Calls a Lua function, which may wait, and stops it at a deadline: also code that is busy, that waits,
  /// or that catches errors. A task that the function has started and waits for is stopped with it; one that it
  /// doesn't wait for continues without the deadline.
  ///
  /// ```swift
  /// func double(_ function: LuaReference, in host: ScriptHost) throws -> [LuaValue] {
  ///   try host.call(function, [.integer(7)], deadline: .now.advanced(by: .seconds(2)))
  /// }
  /// ```
  ///
  /// This one is for code that isn't async: it runs the loop until the function has ended. A call that begins meanwhile on
  /// the same thread, also by such code of another op or task, ends before this one can return; async code has calls that
  /// are independent.
  ///
  /// The function runs as a coroutine: its cleanups have the loop's grace period after the stop. Only a
  /// function of C isn't interrupted, such as a pattern match in a state that isn't restricted. On a loop with a virtual clock the deadline
  /// is so much later on that clock as it is later than the present time.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - arguments: The arguments.
  ///   - deadline: When it has to have ended.
  /// - Returns: All its results.
  /// - Throws: A `FlowError`: of kind `timeout` at the deadline, `stalled` when nothing can end the
  ///   function's wait, `usage` when 100 such calls wait within each other, otherwise what the function has raised.
  public func call(
    _ function: LuaReference, _ arguments: [LuaValue] = [], deadline: ContinuousClock.Instant
  ) throws -> [LuaValue] {
    let limit = TimeLimit(
      ContinuousClock.now.duration(to: deadline), on: loop, of: outermostRun)
    defer { limit.end() }
    return try callAsTask(function, arguments, encloses: true) { task in
      limit.tasks.add(task)
      limit.begin()
    }
  }

  /// Calls a function of a script for the engine, which needs its results at once: one that checks a declaration, or one
  /// of a group. A wait in it keeps the thread from other code. It belongs to the run that the engine executes.
  func callInPlace(
    _ function: LuaReference, _ arguments: [LuaValue], traceback: Bool = true
  ) throws -> [LuaValue] {
    guard let check = loop.checking else {
      return try vm.call(function, arguments, traceback: traceback)
    }
    let owner = FiberOwner.check(check)
    if codeWatch != nil {
      // Other code of the host runs meanwhile, and isn't stopped with this.
      return try run(owner) {
        Result { try callAsTask(function, arguments, encloses: false, adopt: adopt) }
      }.get()
    }
    let call = FunctionInPlace(check)
    callsInPlace.append(call)
    let called = run(owner) {
      vm.callInPlace(function, arguments) {
        call.coroutine = $0
        call.limit(self)
      }
    }
    callsInPlace.removeLast()
    switch called {
    case .returned(let results): return results
    case .ended(let outcome):
      if case .ended(.failed(let error)) = state(after: outcome, of: owner, expires: call.expires) {
        // One that was stopped has the error that has stopped it, whatever it has made of that.
        throw call.stopError ?? error
      }
      throw FlowError(.error, "a function that was called in place has parked")
    }
  }

  /// Calls a function as a task, and runs the loop until that has ended; returns all results.
  private func callAsTask(
    _ function: LuaReference, _ arguments: [LuaValue], encloses: Bool,
    adopt: (SpawnedTask) -> Void
  ) throws -> [LuaValue] {
    let calls = try limitedCalls()
    guard calls.depth < LimitedCalls.deepest else {
      throw FlowError(
        .usage,
        "bad use of 'call' (\(calls.depth) calls with a deadline wait within each other on this thread: "
          + "await 'call(_:_:as:)' instead)")
    }
    calls.depth += 1
    let id = calls.begin()
    defer {
      calls.depth -= 1
      calls.end(id)
    }
    let runner = try vm.uniqueReference(to: calls.runner)
    let task = SpawnedTask(self, runner, [.integer(id), .reference(function)] + arguments)
    adopt(task)
    // Code of a script may be running below: a stop of it stops the call, too.
    let code = CodeInPlace(self)
    loop.checking = nil
    defer { loop.checking = code.checking }
    let run = {
      task.begin()
      self.runToEnd(task, for: code, isEnclosed: encloses)
    }
    if encloses { vm.enclose(run) } else { run() }
    task.markObserved()
    if let error = task.error { throw error }
    guard let results = calls.end(id) else {
      throw FlowError(.stalled, "stalled: nothing can end this wait")
    }
    return results
  }

  /// Runs the loop until a task has ended, or nothing can end it.
  private func runToEnd(_ task: AnyFlowTask, for code: CodeInPlace, isEnclosed: Bool) {
    var isStopping = false
    var isStopped: Bool {
      vm.isEnclosureStopped || code.stopError != nil || !isEnclosed && vm.isAskedToStop
    }
    while !task.isConcluded {
      let canContinue = turnInPlace(until: {
        task.isConcluded || vm.hasRequest
          || !isStopping && isStopped
      })
      switch takeRequest() {
      case .termination: terminate()
      case .interruption: task.stop(.cancelled(reason: Self.interruption))
      case .cancellation(let error):
        stopTasks(error)
        task.stop(error)
      case nil: break
      }
      if !isStopping, isStopped {
        isStopping = true
        task.stop((code.stopError ?? .cancelled()).asReason)
      }
      if !canContinue, !task.isConcluded, !task.stopStalled() { return }
    }
  }

  func limitedCalls() throws -> LimitedCalls {
    try service {
      let note = try vm.makeFunction(
        bind { host, call in
          guard let id = call.integer(1) else { return call.answer() }
          let results = try (0..<max(0, call.count - 1)).map { try call.value($0 + 2) }
          host.existing(LimitedCalls.self)?.note(results, of: id)
          return call.answer(results.first ?? .nil)
        })
      let makers = """
        local note = ...
        return function(id, f, ...) note(id, f(...)) end, function(id, f, ...) return note(id, f(...)) end
        """
      let maker = try vm.loadOwn(ByteString(makers), name: "=[flow]")
      let made = try vm.call(maker, [.reference(note)])
      guard made.count == 2, case .reference(let runner) = made[0],
        case .reference(let returningRunner) = made[1]
      else { throw LuaError(.runtime, "no function for calls was made") }
      return LimitedCalls(runner: runner, returningRunner: returningRunner)
    }
  }

  // MARK: Objects of the engine as values of scripts

  /// An op or a flow as scripts see it: always the same Lua value while Lua has it.
  ///
  /// - Parameter op: An op of any origin, such as one whose body is a Swift closure.
  /// - Returns: The op for a script, which can add it to a flow, start and run it.
  /// - Throws: A `LuaError` when memory runs out or the host is closed.
  public func value(of op: some OpConvertible) throws -> LuaValue {
    let op = op.makeOp()
    if let flow = op as? Flow { return try vm.value(of: flow, types.flow) }
    if let machine = op as? MachineOp { return try vm.value(of: machine, types.machine) }
    return try vm.value(of: op, types.op)
  }

  /// A run as scripts see it: always the same Lua value while Lua has it.
  ///
  /// - Parameter run: A run on the loop of this host.
  /// - Returns: The value that `op:start()` would have returned.
  /// - Throws: A `LuaError` when memory runs out or the host is closed.
  package func value(of run: Run) throws -> LuaValue { try vm.value(of: run, types.run) }

  /// The op or flow in a value of a script; nil when it is something else.
  public func op(in value: LuaValue) -> Op? {
    guard isOwn(value) else { return nil }
    return vm.object(in: value, types.op) ?? vm.object(in: value, types.flow)
      ?? vm.object(in: value, types.machine)
  }

  /// The op, flow or machine that a script has as a global variable.
  ///
  /// ```swift
  /// let rule = try host.op(named: "RuleOp")
  /// ```
  ///
  /// - Throws: A `FlowError` of kind `usage` when there is no such variable, or its value is something else.
  public func op(named name: String) throws -> Op {
    let value = try vm.global(name)
    if let op = op(in: value) { return op }
    if !value.isNil {
      throw FlowError(.usage, "the global '\(name)' is no op (\(kindName(of: value)))")
    }
    let ops = try vm.pairs(of: vm.globals()).compactMap { key, value in
      if case .string(let known) = key, op(in: value) != nil { known.description } else { nil }
    }
    let hint = NearestName.of(name, in: ops).map { " (did you mean '\($0)'?)" } ?? ""
    throw FlowError(.usage, "the script has no global op '\(name)'\(hint)")
  }

  /// The run in a value of a script; nil when it is something else.
  public func startedRun(in value: LuaValue) -> Run? {
    isOwn(value) ? vm.object(in: value, types.run) : nil
  }

  /// Whether a value belongs to this host's state, if it belongs to any.
  private func isOwn(_ value: LuaValue) -> Bool {
    guard case .reference(let reference) = value else { return true }
    return reference.vm === vm
  }

  // MARK: Memory outside of the state: texts that were copied from it, logs, outputs, and keys count into its limit

  /// Counts what the host holds for its scripts into the limit of the state, if it has one.
  func countMemory() {
    guard vm.memoryLimit != nil, loop.memory == nil else { return }
    let account = MemoryAccount(
      limit: { [weak vm] in vm?.memoryLimit },
      // A run may log after its host was closed.
      onGrowth: { [weak vm] in vm?.noteMemoryOutside() },
      exceededLimit: { [weak vm] in
        // A program may write until it has ended, also after the host was closed.
        guard let vm, vm.isBeyondMemoryLimit() else { return nil }
        return vm.memoryLimit
      })
    loop.memory = account
    vm.memoryOutside = { account.held(within: $0) }
    vm.onCopiedText = { account.add($0) }
  }

  /// The state has another limit, or none.
  func memoryLimitChanged() {
    countMemory()
    workersMemoryLimitChanged()
  }

  /// Refuses bytes that a script gives away when the limit is exceeded.
  func checkMemory() throws {
    if vm.isBeyondMemoryLimit() { throw LuaError(.memory, "not enough memory") }
  }

  /// Refuses a new key when keys have taken a quarter of the limit. They are kept until the host is closed, so
  /// they must leave the rest to others. (The state keeps the names of keys too, another quarter.)
  func checkMemory(forKey name: ByteString) throws {
    guard let limit = vm.memoryLimit,
      loop.keys.counted + KeyTable.size(of: name) > limit / 4, !loop.keys.contains(name)
    else { return }
    throw LuaError(.memory, "not enough memory")
  }

  /// Refuses a new secret when secrets have taken a quarter of the limit: no line may ever show their texts,
  /// which stay as long as what has had them.
  func checkMemory(forSecret value: FlowValue) throws {
    guard let limit = vm.memoryLimit else { return }
    // A table whose strings together are too large isn't copied.
    if case .opaque(let table as ScriptValue) = value { _ = try table.parts(within: limit) }
    var count = loop.secrets.byteCount
    SecretTexts.forEachText(of: value) { count += $0.count }
    if count > limit / 4 { throw LuaError(.memory, "not enough memory") }
  }

  /// Stops counting a text that travels to another state, where it counts from now on.
  func handOver(_ text: ByteString) { loop.memory?.handOver(text) }
}

/// The calls of a host that may wait.
final class LimitedCalls: HostService {
  /// A Lua function that calls another one and keeps all its results here.
  let runner: LuaReference
  /// A Lua function like it, which returns the first of them as well.
  let returningRunner: LuaReference
  /// The results, by the numbers of the calls; nil before the end of a call.
  private var results: [Int64: [LuaValue]?] = [:]
  /// The number of the last one.
  private var last: Int64 = 0
  /// Those that async code awaits.
  fileprivate var open: [Int64: SpawnedTask] = [:]
  /// How many run the loop, each on top of the one before.
  fileprivate var depth = 0
  /// So many of them fit on the stack of a thread that is small.
  fileprivate static let deepest = 100

  init(runner: LuaReference, returningRunner: LuaReference) {
    self.runner = runner
    self.returningRunner = returningRunner
  }

  /// Begins a call; returns its number.
  func begin() -> Int64 {
    last += 1
    results[last] = .some(nil)
    return last
  }

  fileprivate func note(_ values: [LuaValue], of id: Int64) {
    if results[id] != nil { results[id] = values }
  }

  /// Ends a call; returns its results, if its function has returned.
  @discardableResult
  func end(_ id: Int64) -> [LuaValue]? { results.removeValue(forKey: id) ?? nil }

  func hostWillClose(_ host: ScriptHost) {
    for task in open.values { task.closeCode(.cancelled(reason: "the script host is closed")) }
  }
}

/// Waits for the function of `flow.within`, or of `limit:use`, and returns all its results.
final class LimitedWait: TaskWait {
  private let calls: LimitedCalls
  private let id: Int64

  /// Has `begin` begin a task with a function and the arguments of a call after its first two, and waits for its end.
  static func begin(
    _ call: LuaCall, _ function: LuaReference, _ host: ScriptHost,
    _ begin: (SpawnedTask) throws -> Void
  ) throws -> LuaAnswer {
    let calls = try host.limitedCalls()
    let id = calls.begin()
    let task: SpawnedTask
    do {
      let further = try (0..<max(0, call.count - 2)).map { try call.value($0 + 3) }
      let runner = try host.vm.uniqueReference(to: calls.returningRunner)
      task = SpawnedTask(host, runner, [.integer(id), .reference(function)] + further)
      host.begin(task, call.origin)
      task.markObserved()
      try begin(task)
    } catch {
      calls.end(id)
      throw error
    }
    let wait = LimitedWait(host, task, calls, id)
    return task.isConcluded ? try wait.finish(call) : try call.wait(wait)
  }

  private init(_ host: ScriptHost, _ task: AnyFlowTask, _ calls: LimitedCalls, _ id: Int64) {
    self.calls = calls
    self.id = id
    super.init(task, for: task.isConcluded ? nil : host.waitingTask, deadline: nil) {
      [unowned host] call in
      if let error = try host.error(of: task) { throw host.raise(error) }
      guard let results = calls.end(id), !results.isEmpty else { return call.answer() }
      return call.answer([try host.luaResult(of: task)] + results.dropFirst())
    }
  }

  // It may have been abandoned.
  deinit { calls.end(id) }
}
