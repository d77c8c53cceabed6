@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A coroutine of a script that waits: an op's, or a callback's. It continues when its wait is
/// ready.
///
/// There can be many at a time, so rarely used data is stored elsewhere.
final class Fiber: LuaWaiter, LoopJob, Abandonable {
  /// The outcome of a fiber.
  enum End {
    case returned(LuaValue)
    case failed(FlowError)
  }

  /// The state of a coroutine that was started or continued.
  enum State {
    case waits(RunningCoroutine)
    case ended(End)
  }

  /// The state of a fiber that is being stopped.
  private final class Ending {
    /// Set once the fiber has been stopped: raised at this wait and at every further one.
    var cancellation: FlowError?
    /// The time at which a fiber that ignores the stop is closed. It is on the monotonic clock,
    /// even if the loop's clock is virtual, because it limits a script's real running time.
    var graceEnd: Int64 = .max
    /// Set if it is to be closed as soon as it isn't running.
    var closing: FlowError?
    /// The time at which a waiting `__close` of it is cut off, on the loop's clock; nil until one
    /// has waited after the stop.
    var closeEnd: Int64?
    var closeLimit: LoopTimer?
  }

  private let host: ScriptHost
  /// The loop on which it runs. That loop may be paused when the wait becomes ready.
  private var loop: FlowEventLoop { host.loop }
  private let coroutine: RunningCoroutine

  // Unchecked exclusivity, of these: only the loop's thread uses them, and no access lasts into a
  // call.

  @exclusivity(unchecked) private var isRunning = false
  @exclusivity(unchecked) private var isFinished = false
  private let owner: FiberOwner
  /// The wait: it must live until the coroutine has taken its results.
  @exclusivity(unchecked) private var wait: LuaWait?
  @exclusivity(unchecked) private var ending: Ending?

  /// The time, in nanoseconds, for code in which a timeout was raised: enough to pass the error on,
  /// because timeouts have no grace.
  static let unwindTime: Int64 = 10_000_000

  init(_ host: ScriptHost, _ coroutine: RunningCoroutine, owner: FiberOwner) {
    self.host = host
    self.coroutine = coroutine
    self.owner = owner
  }

  /// Waits for the wait on which the coroutine has parked.
  func park() {
    guard let wait = host.vm.parkedWait() else {
      let error = FlowError(.error, "a coroutine parked without a wait", op: owner.opName)
      end(error)
      return
    }
    self.wait = wait
    // Code that lets others run has the time that it began with: on a virtual clock no other one passes while it is busy.
    if wait is TurnWait {
      loop.looksAround()
    } else {
      host.vm.unwatch(coroutine)
      host.waitBegins?[ObjectIdentifier(self)] = loop.now()
    }
    if let ending {
      if let closing = ending.closing {
        close(closing)
        return
      }
      // Code that lets others run is as busy as before.
      if let cancellation = ending.cancellation, !(wait is TurnWait) {
        switch closeState(ending) {
        case .within: break
        case .over:
          cut(cancellation)
          return
        case .none:
          if LuaVM.monotonicTime >= ending.graceEnd {
            close(cancellation)
            return
          }
          wait.fail(host.raise(cancellation))
        }
      }
    }
    if wait.isReady {
      enqueue(after: (wait as? TurnWait)?.rounds ?? 0)
    } else {
      wait.waiter = self
    }
  }

  override func waitIsReady() { loop.enqueue(self) }

  /// Continues after what is ready now and, so many times, what that makes ready.
  private func enqueue(after rounds: Int) {
    if rounds == 0 { return loop.enqueue(self) }
    loop.enqueue { [self] in enqueue(after: rounds - 1) }
  }

  /// Raises an error at the wait, and at all later ones. A coroutine that ignores the error is
  /// closed after the grace period, even if it is busy.
  func cancel(_ error: FlowError) {
    let ending = makeEnding()
    guard ending.cancellation == nil else { return }
    host.vm.beginStop()
    // A timeout records the place of the code that it stops, which isn't a `__close`.
    let error =
      error.limit != nil && !isRunning && !host.vm.isClosing(coroutine)
      ? error.located(by: host.vm.traceback(of: coroutine)) : error
    ending.cancellation = error
    ending.graceEnd = LuaVM.monotonicTime.later(by: unwindTime(of: error))
    if let turn = wait as? TurnWait, !isRunning {
      let isOver = turn.isForCancellation || host.codeWatch?.isStopped(owner) == true
      ending.graceEnd = min(
        ending.graceEnd, LuaVM.monotonicTime.later(by: isOver ? 0 : host.busyGrace))
      return
    }
    if wait != nil {
      switch closeState(ending) {
      case .within: return
      case .over:
        cut(error)
        return
      case .none: wait?.fail(host.raise(error))
      }
    }
    (wait as? TaskWait)?.stopTarget(error)
    // It may be below on the stack, or may have requested the stop itself.
    if isRunning {
      ending.graceEnd = min(ending.graceEnd, LuaVM.monotonicTime.later(by: host.busyGrace))
      host.vm.watch(coroutine, deadline: ending.graceEnd, grace: host.closeGrace(of: owner))
    }
  }

  /// The time, in nanoseconds, for code that ignores `error` after it was raised.
  private func unwindTime(of error: FlowError) -> Int64 {
    error.limit != nil ? Self.unwindTime : loop.gracePeriod.clampedNanoseconds
  }

  // MARK: Closing variables

  /// The state of a stopped coroutine's variables to be closed.
  private enum CloseState {
    /// It isn't waiting in a `__close`.
    case none
    /// It is waiting in one, within its grace.
    case within
    /// It is waiting in one, after its grace.
    case over
  }

  /// Whether it waits in a `__close`. Nothing is raised there, and the grace of its owner begins,
  /// unless it has begun.
  private func closeState(_ ending: Ending) -> CloseState {
    guard owner.hasGrace, host.vm.isClosing(coroutine) else { return .none }
    let end: Int64
    if let known = ending.closeEnd {
      end = known
    } else {
      end = host.closeEnd(of: owner)
      ending.closeEnd = end
      if end != .max { ending.closeLimit = loop.schedule(at: end) { self.closeIsOver() } }
    }
    // The code after the `__close` has the same time as without it.
    ending.graceEnd = LuaVM.monotonicTime.later(by: ending.cancellation.map(unwindTime) ?? 0)
    return loop.now() < end ? .within : .over
  }

  /// Called at the end of the grace for its `__close`s.
  private func closeIsOver() {
    guard !isFinished, !isRunning, let ending, let cancellation = ending.cancellation,
      host.vm.isClosing(coroutine)
    else { return }
    cut(cancellation)
  }

  /// Ends the `__close` in which it waits; the other ones are still called.
  private func cut(_ error: FlowError) {
    host.reportCutClose(of: owner, waits: whereItWaits)
    let outer = host.waitsInPlace.cutsCloses
    host.waitsInPlace.cutsCloses = true
    close(error)
    host.waitsInPlace.cutsCloses = outer
  }

  /// Ends it at once with `error`: its pending `__close`s run, but no other code of it.
  func close(_ error: FlowError) {
    guard !isFinished else { return }
    if isRunning {
      makeEnding().closing = error
      return
    }
    wait?.abandon()
    if wait?.isReady == true { wait?.discard() }
    wait = nil
    host.vm.watch(
      coroutine, deadline: LuaVM.monotonicTime, grace: loop.gracePeriod.clampedNanoseconds)
    end(error)
  }

  /// Releases the wait, which holds the fiber, for a loop that is shut down.
  func abandon() {
    wait?.waiter = nil
    wait?.abandon()
    wait = nil
  }

  /// Whether its code is running, or waits in place.
  var isInnermost: Bool { host.vm.isInnermost(coroutine) }

  /// The error that stops it; nil if it isn't being stopped.
  var stopError: FlowError? { ending.flatMap { $0.closing ?? $0.cancellation } }

  private func makeEnding() -> Ending {
    if let ending { return ending }
    let made = Ending()
    ending = made
    return made
  }

  func run() {
    // It may have been closed since.
    guard !isFinished else { return }
    isRunning = true
    let outer = host.enter(owner)
    let outerFiber = host.fiber
    host.fiber = .passUnretained(self)
    if host.logsWaits { logWait() }
    let limit = watchLimit
    if limit != .max {
      host.vm.watch(coroutine, deadline: limit, grace: closeGrace)
    }
    let outcome = host.vm.resume(coroutine)
    host.current = outer
    host.fiber = outerFiber
    isRunning = false
    // Its results have been taken; the next wait, if any, is a new one.
    wait = nil
    switch host.state(after: outcome, of: owner, expires: ending?.cancellation == nil) {
    case .waits: park()
    case .ended(let end): finish(end)
    }
  }

  /// Logs the wait that has ended.
  private func logWait() {
    guard let wait, let began = host.waitBegins?.removeValue(forKey: ObjectIdentifier(self)) else {
      return
    }
    let subject = loop.secrets.redacted(ByteString(wait.subject)).truncated(to: FlowValue.logLimit)
    host.workPlace?.append(
      LoggedWork(.wait, subject, error: ending?.cancellation), from: began, to: loop.now())
  }

  /// When the coroutine has to be stopped if it is still busy, on the monotonic clock.
  private var watchLimit: Int64 {
    guard let ending, ending.cancellation != nil else {
      return host.watchDeadline(owner.deadline)
    }
    return ending.graceEnd
  }

  /// The time, in nanoseconds, for its busy `__close`s after the watchdog has stopped it.
  private var closeGrace: Int64 {
    guard let end = ending?.closeEnd else { return host.closeGrace(of: owner) }
    return end == .max ? .max : max(end - loop.now(), 0)
  }

  /// Closes the coroutine. Its `__close`s belong to the same owner.
  private func end(_ error: FlowError) {
    host.run(owner) { host.vm.release(coroutine, finished: false) }
    finish(.failed(error))
  }

  private func finish(_ end: End) {
    guard !isFinished else { return }
    isFinished = true
    host.waitBegins?[ObjectIdentifier(self)] = nil
    ending?.closeLimit?.cancel()
    if let cancellation = ending?.cancellation {
      owner.finish(.failed(cancellation), host)
    } else {
      owner.finish(end, host)
    }
  }
}

/// The wait of busy code that lets others run: it is over at once.
final class TurnWait: LuaWait {
  /// Whether what runs meanwhile learns that its caller is cancelled, and may stop the code.
  let isForCancellation: Bool

  init(isForCancellation: Bool = false) {
    self.isForCancellation = isForCancellation
    super.init()
    ready()
  }

  /// How often what is ready runs before the code continues: a cancellation passes from the call to its Swift task, and
  /// from that to the run which it waits for.
  var rounds: Int { isForCancellation ? 8 : 0 }

  override var subject: String { "turn" }
}

/// A function that the engine has called in place, and that hasn't ended.
final class FunctionInPlace {
  private let check: CheckingExecution
  /// Its coroutine while it executes; nil while it waits.
  var coroutine: RunningCoroutine?
  /// Why the execution is stopped that needs it, and when it is stopped itself because of that.
  private(set) var stopError: FlowError?
  private var graceEnd = Int64.max

  /// Whether a stop means that the time of the execution is over.
  var expires: Bool { stopError == nil && check.deadline != .max }

  init(_ check: CheckingExecution) { self.check = check }

  /// Has it stopped when its time is over, if it executes: it has a moment after a stop, as the code of an op has.
  func limit(_ host: ScriptHost) {
    if stopError == nil, let error = check.stopError {
      stopError = error
      let grace = coroutine == nil ? host.loop.gracePeriod.clampedNanoseconds : host.busyGrace
      graceEnd = LuaVM.monotonicTime.later(by: error.limit != nil ? Fiber.unwindTime : grace)
    }
    let limit = min(host.watchDeadline(check.deadline), graceEnd)
    if limit != .max, let coroutine {
      host.vm.watch(
        coroutine, deadline: limit, grace: host.closeGrace(of: FiberOwner.check(check)))
    }
  }
}

extension Fiber: ExecutingCode {
  var whereItWaits: ByteString? {
    // Without a wait it has returned just now, and may be released.
    if isFinished || isRunning || wait == nil { return nil }
    return host.vm.waitPlace(of: coroutine).map { $0 }
  }
}

extension ScriptHost {
  /// The time, in nanoseconds, for the `__close`s of a coroutine after it was stopped.
  func closeGrace(of owner: FiberOwner) -> Int64 {
    owner.hasGrace ? closeGrace(owner.grace) : loop.gracePeriod.clampedNanoseconds
  }

  /// The nanoseconds of a grace; nil for the default.
  func closeGrace(_ grace: Duration?) -> Int64 {
    (grace ?? loop.cleanupGrace).clampedNanoseconds
  }

  /// The time, on the loop's clock, at which the `__close`s of a stopped coroutine are cut off: all
  /// of an op have one grace, which they share with its other cleanups.
  fileprivate func closeEnd(of owner: FiberOwner) -> Int64 {
    owner.context?.beginGrace() ?? loop.now().later(by: closeGrace(of: owner))
  }

  /// Reports a `__close` that was cut off; `waits` is the function in which it waited, and the
  /// place, or nil if it was busy.
  fileprivate func reportCutClose(of owner: FiberOwner, waits: ByteString?) {
    switch owner {
    case .op, .machine: owner.context?.reportCutClose(waits: waits)
    case .task(let task): task.reportCutClose(waits: waits, grace: owner.grace)
    case .callback(let run, _), .predicate(let run, _), .delay(let run, _):
      run.reportCutClose(waits: waits, grace: nil)
    case .check(let check): check.run.reportCutClose(waits: waits, grace: nil)
    case .cleanup: break
    }
  }

  /// Returns the error that has stopped a busy coroutine, and releases the coroutine.
  func takeStop(_ coroutine: RunningCoroutine, of owner: FiberOwner) -> ByteString {
    // A cleanup that is cut off is reported as such.
    if owner.hasGrace, vm.hasCutClose(coroutine) { reportCutClose(of: owner, waits: nil) }
    let traceback = vm.stopTraceback(coroutine)
    vm.release(coroutine, finished: false)
    return traceback
  }

  /// Runs a script's code for its owner, up to the next wait. Everything that it starts belongs to
  /// the owner.
  func run<Result>(_ owner: FiberOwner, _ body: () -> Result) -> Result {
    let outer = enter(owner)
    defer { current = outer }
    return body()
  }

  /// Begins to run a script's code for its owner; afterwards the caller restores the returned
  /// value.
  fileprivate func enter(_ owner: FiberOwner) -> Current {
    let outer = current
    switch owner {
    case .op(let context), .cleanup(let context, _):
      current = Current(op: .passUnretained(context))
    case .callback(let owner, _), .predicate(let owner, _), .delay(let owner, _):
      current = Current(run: .passUnretained(owner))
    case .check(let check): current = Current(run: .passUnretained(check.run))
    case .machine(let call, _):
      current = Current(op: call.context.map { .passUnretained($0) }, run: outer.run)
    case .task(let code): _ = enter(code)
    }
    return outer
  }

  /// Makes the function of a task current.
  @inline(__always)
  private func enter(_ code: ScriptTask) -> Current {
    let outer = current
    current = Current(op: code.holdOp(), run: nil, task: .passUnretained(code))
    return outer
  }

  /// Converts a deadline of the loop's clock to the monotonic clock of the watchdog: a virtual
  /// clock doesn't move while a script is busy.
  func watchDeadline(_ deadline: Int64) -> Int64 {
    guard deadline != .max else { return .max }
    let (left, overflow) = deadline.subtractingReportingOverflow(loop.now())
    let (sum, isFar) = LuaVM.monotonicTime.addingReportingOverflow(max(left, 0))
    return overflow || isFar ? .max : sum
  }

  /// A Swift error as an engine error.
  func flowError(thrown error: any Error, op: ByteString?) -> FlowError {
    if let error = error as? FlowError { return error }
    return FlowError.from(error).with { $0.op = op }
  }

  /// The deadline of code that starts, on the clock of the watchdog, and the grace of its
  /// `__close`s; both are 0 if it has no deadline.
  @inline(__always)
  func limits(
    _ deadline: Int64, grace: @autoclosure () -> Int64
  ) -> (deadline: Int64, grace: Int64) {
    let limit = watchDeadline(deadline)
    return limit == .max ? (0, 0) : (limit, grace())
  }

  /// Handles the outcome of code of `owner`, where `expires` says whether a stop of busy code means
  /// that the owner's time is over. A coroutine that doesn't wait is released.
  func state(
    after outcome: LuaOutcome, of owner: FiberOwner, expires: Bool = true
  ) -> Fiber.State {
    let error: FlowError
    switch outcome {
    case .parked(let coroutine): return .waits(coroutine)
    case .returned(let value, _): return .ended(.returned(value))
    // Only machines ask for it, and read it themselves.
    case .returnedArgument: return .ended(.returned(.nil))
    case .refused(let problem): error = flowError(thrown: problem, op: owner.opName)
    case .stopped(let coroutine):
      let traceback = takeStop(coroutine, of: owner)
      error =
        expires
        ? owner.expire().located(by: traceback)
        : FlowError(.error, "stopped", op: owner.opName)
    case .failed(let coroutine):
      var failure = vm.failure(coroutine)
      if failure.position.isEmpty, case .task(let code) = owner {
        failure.error = located(failure.error, atStartOf: code)
      }
      let raised = flowError(of: failure, op: owner.opName)
      error = codeWatch?.error(raised, of: owner) ?? raised
      run(owner) { vm.release(coroutine, finished: false) }
    case .yielded(let coroutine):
      error = FlowError(
        .usage, "attempt to yield from outside a coroutine", op: owner.opName)
      run(owner) { vm.release(coroutine, finished: false) }
    }
    return .ended(.failed(error))
  }

  /// The message of a function of C, which a task has called, about its arguments names no line: it gets the line of the
  /// task's start. Other messages may have a place already, or be meant to have none.
  private func located(_ error: any Error, atStartOf code: ScriptTask) -> any Error {
    guard let raised = error as? LuaError, case .string(let text)? = raised.value,
      text.hasPrefix("bad argument ") || text.hasPrefix("wrong number of arguments "),
      code.origin != 0
    else { return error }
    let message = "\(vm.text(ofOrigin: code.origin)): \(text)"
    return LuaError(raised.code, value: .string(message), message: message)
  }

  /// Runs a function as a coroutine that may wait. Its owner is notified once of the outcome,
  /// perhaps at once.
  ///
  /// - Returns: The coroutine if it waits.
  @discardableResult
  func runFiber(
    _ function: LuaReference, _ arguments: [LuaValue], owner: FiberOwner
  ) -> Fiber? {
    let limits = limits(owner.deadline, grace: closeGrace(of: owner))
    let outcome = run(owner) {
      vm.start(function, arguments, deadline: limits.deadline, grace: limits.grace)
    }
    return handle(outcome, owner, limits.deadline)
  }

  /// Runs the function of a task.
  func runFiber(
    _ function: consuming LuaUniqueReference, of code: ScriptTask, after source: AnyFlowTask?
  ) -> Fiber? {
    let outer = enter(code)
    let limits = limits(code.ownerDeadline, grace: closeGrace(code.op?.grace))
    let outcome: LuaOutcome
    if let number = code.numberArgument(source) {
      outcome = vm.start(function, number, deadline: limits.deadline, grace: limits.grace)
    } else {
      outcome = code.start(
        function, after: source, deadline: limits.deadline, grace: limits.grace)
    }
    current = outer
    if case .returned(let value, _) = outcome {
      code.returned(value)
      return nil
    }
    return handle(outcome, .task(code), limits.deadline)
  }

  /// Calls a function for a task that does so many times.
  ///
  /// - Returns: Its result; nil if the task is notified of its end, now or, when the function waits, later.
  func call(_ callback: LuaCallback, of code: ScriptTask, deadline: Int64) -> LuaValue? {
    let outer = enter(code)
    let limits = limits(deadline, grace: closeGrace(code.op?.grace))
    let outcome = callback.start(
      slot: 0, generation: 0, deadline: limits.deadline, grace: limits.grace)
    current = outer
    if case .returned(let value, _) = outcome { return value }
    if let fiber = handle(outcome, .task(code), limits.deadline) { code.waits(in: fiber) }
    return nil
  }

  /// Handles the outcome of a start; returns the coroutine if it waits.
  private func handle(_ outcome: LuaOutcome, _ owner: FiberOwner, _ deadline: Int64) -> Fiber? {
    switch state(
      after: outcome, of: owner, expires: deadline != 0 || isWorker || owner.isCleanup)
    {
    case .waits(let coroutine):
      let fiber = Fiber(self, coroutine, owner: owner)
      fiber.park()
      return fiber
    case .ended(let end):
      owner.finish(end, self)
      return nil
    }
  }
}
