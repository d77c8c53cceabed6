@_spi(Scripting) internal import FlowEngine
internal import LuaVM

/// A coroutine of a script that waits: an op's, or a callback's. It goes on when its wait is ready.
///
/// There can be many at a time, so what few need stands elsewhere.
final class Fiber: LoopJob, LuaWaiter {
  /// How a fiber ended.
  enum End {
    case returned(LuaValue)
    case failed(FlowError)
  }

  /// How a fiber is being ended from outside.
  private final class Ending {
    /// Set once the fiber has been asked to end: raised at this wait and at every further one.
    var cancellation: FlowError?
    /// When a fiber that goes on regardless is closed: a time of the monotonic clock, also where the
    /// loop's own clock is virtual, since it is a script's own running time that is limited.
    var graceEnd: Int64 = .max
    /// Set when it is to be closed as soon as it doesn't run.
    var closing: FlowError?
    /// When a `__close` of it that waits is cut, on the loop's clock; nil until one has waited after
    /// the request to end.
    var closeEnd: Int64?
    var closeLimit: Timer?
  }

  private let host: ScriptHost
  /// The loop that it runs on, which may stand still when its wait is ready.
  private let loop: EventLoop
  private let coroutine: LuaCoroutine

  // Unchecked exclusivity, of these: the loop's thread alone touches them, and no access lasts into
  // a call.

  @exclusivity(unchecked) private var isRunning = false
  @exclusivity(unchecked) private var isFinished = false
  private let owner: FiberOwner
  /// The wait: it must live until the coroutine has taken its results.
  @exclusivity(unchecked) private var wait: LuaWait?
  @exclusivity(unchecked) private var ending: Ending?

  /// How long code that a timeout was raised in may go on, in nanoseconds: enough to pass the error on,
  /// as there is no grace for timeouts.
  static let unwindTime: Int64 = 10_000_000

  init(_ host: ScriptHost, _ coroutine: LuaCoroutine, owner: FiberOwner) {
    self.host = host
    loop = host.loop
    self.coroutine = coroutine
    self.owner = owner
  }

  /// Waits for what the coroutine has parked on.
  func park() {
    guard let wait = host.vm.parkedWait() else {
      let error = FlowError(.error, "a coroutine parked without a wait", op: owner.opName)
      end(.failed(error), finished: false)
      return
    }
    self.wait = wait
    if let ending {
      if let closing = ending.closing {
        close(closing)
        return
      }
      if let cancellation = ending.cancellation {
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
      loop.enqueue(self)
    } else {
      wait.waiter = self
    }
  }

  func waitIsReady() { loop.enqueue(self) }

  /// Raises an error at the wait, and at all later ones. A coroutine that goes on regardless is closed
  /// after the grace period, even when it is busy.
  func cancel(_ error: FlowError) {
    let ending = makeEnding()
    guard ending.cancellation == nil else { return }
    // A timeout says where the code was that it ends, which isn't a `__close`.
    let error =
      error.seconds != nil && !isRunning && !host.vm.isClosing(coroutine)
      ? error.located(by: ByteString(host.vm.traceback(of: coroutine))) : error
    ending.cancellation = error
    ending.graceEnd = LuaVM.monotonicTime.later(by: unwindTime(of: error))
    if wait != nil {
      switch closeState(ending) {
      case .within: return
      case .over:
        cut(error)
        return
      case .none: wait?.fail(host.raise(error))
      }
    }
    // A timeout is the waiting op's own; who waited may try again.
    if error.kind == .cancelled, error.seconds == nil { (wait as? TaskWait)?.stopTarget(error) }
    // It may be below on the stack, or have asked for it itself.
    if isRunning {
      ending.graceEnd = min(ending.graceEnd, LuaVM.monotonicTime.later(by: host.busyGrace))
      host.vm.watch(coroutine, deadline: ending.graceEnd, grace: host.closeGrace(of: owner))
    }
  }

  /// How long code that `error` was raised in may go on regardless, in nanoseconds.
  private func unwindTime(of error: FlowError) -> Int64 {
    error.seconds != nil ? Self.unwindTime : loop.gracePeriod
  }

  // MARK: Closing variables

  /// What a coroutine that was asked to end does about its variables.
  private enum CloseState {
    /// It waits in no `__close`.
    case none
    /// It waits in one, which has its grace.
    case within
    /// The same, when that is over.
    case over
  }

  /// Whether it waits in a `__close`: nothing is raised there, and the grace of what it belongs to
  /// begins, unless it has begun.
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
    // What comes after the `__close` has as long as it would have had without.
    ending.graceEnd = LuaVM.monotonicTime.later(by: ending.cancellation.map(unwindTime) ?? 0)
    return loop.now() < end ? .within : .over
  }

  /// Called when the grace of what it closes is over.
  private func closeIsOver() {
    guard !isFinished, !isRunning, let ending, let cancellation = ending.cancellation,
      host.vm.isClosing(coroutine)
    else { return }
    cut(cancellation)
  }

  /// Ends the `__close` that it waits in; the others are called all the same.
  private func cut(_ error: FlowError) {
    host.reportCutClose(of: owner, waits: whereItWaits)
    let outer = host.cutsCloses
    host.cutsCloses = true
    close(error)
    host.cutsCloses = outer
  }

  /// Ends it at once with `error`: its pending `__close`s run, but nothing else of it.
  func close(_ error: FlowError) {
    guard !isFinished else { return }
    if isRunning {
      makeEnding().closing = error
      return
    }
    wait?.abandon()
    wait = nil
    host.vm.watch(coroutine, deadline: LuaVM.monotonicTime, grace: loop.gracePeriod)
    end(.failed(error), finished: false)
  }

  /// Whether its code is what runs, or waits in place.
  var isInnermost: Bool { host.vm.isInnermost(coroutine) }

  /// Why it is to end; nil when nobody has asked it.
  var stopError: FlowError? { ending.flatMap { $0.closing ?? $0.cancellation } }

  private func makeEnding() -> Ending {
    if let ending { return ending }
    let made = Ending()
    ending = made
    return made
  }

  func run() {
    // It may have been closed meanwhile.
    guard !isFinished else { return }
    isRunning = true
    let outer = host.enter(owner)
    let outerFiber = host.fiber
    host.fiber = .passUnretained(self)
    let limit = watchLimit
    if limit != .max {
      host.vm.watch(coroutine, deadline: limit, grace: closeGrace)
    }
    let step = host.vm.resume(coroutine)
    if limit != .max || ending != nil { host.vm.unwatch(coroutine) }
    host.current = outer
    host.fiber = outerFiber
    isRunning = false
    // Its results have been taken; the next wait, if any, is another one.
    wait = nil
    switch step.outcome {
    case .parked: park()
    case .finished:
      let result: End
      do {
        result = .returned(try host.vm.firstResult(step))
      } catch {
        result = .failed(host.flowError(thrown: error, op: owner.opName))
      }
      end(result, finished: true)
    case .stopped where ending?.cancellation == nil:
      let traceback = host.takeStop(coroutine, of: owner)
      finish(.failed(owner.expire().located(by: traceback)))
    case .stopped:
      _ = host.takeStop(coroutine, of: owner)
      finish(.failed(FlowError(.error, "stopped", op: owner.opName)))
    case .failed, .yielded:
      end(.failed(host.takeFailure(step, op: owner.opName)), finished: false)
    }
  }

  /// When the coroutine has to be stopped if it is still busy, on the monotonic clock.
  private var watchLimit: Int64 {
    guard let ending, ending.cancellation != nil else {
      return host.watchDeadline(owner.deadline)
    }
    return ending.graceEnd
  }

  /// How long its `__close`s may be busy after the watchdog has stopped it, in nanoseconds.
  private var closeGrace: Int64 {
    guard let end = ending?.closeEnd else { return host.closeGrace(of: owner) }
    return end == .max ? .max : max(end - loop.now(), 0)
  }

  private func end(_ end: End, finished: Bool) {
    // What it closes, if anything, belongs to the same owner.
    if finished {
      host.vm.release(coroutine, finished: true)
    } else {
      host.run(owner) { host.vm.release(coroutine, finished: false) }
    }
    finish(end)
  }

  private func finish(_ end: End) {
    guard !isFinished else { return }
    isFinished = true
    ending?.closeLimit?.cancel()
    if let cancellation = ending?.cancellation {
      owner.finish(.failed(cancellation), host)
    } else {
      owner.finish(end, host)
    }
  }
}

extension Fiber: ExecutingCode {
  var whereItWaits: ByteString? {
    if isFinished || isRunning { return nil }
    return host.vm.waitPlace(of: coroutine).map { ByteString($0) }
  }
}

extension ScriptHost {
  /// How long the `__close`s of a coroutine may take after it was stopped, in nanoseconds.
  func closeGrace(of owner: FiberOwner) -> Int64 {
    owner.hasGrace ? closeGrace(owner.grace) : loop.gracePeriod
  }

  /// The same, of a grace in seconds; nil for the default.
  func closeGrace(_ seconds: Double?) -> Int64 {
    EventLoop.nanoseconds(seconds ?? loop.cleanupGrace)
  }

  /// When the `__close`s of a coroutine that was stopped are cut, on the loop's clock: all of an op have
  /// one grace, which its other cleanups share.
  fileprivate func closeEnd(of owner: FiberOwner) -> Int64 {
    owner.context?.beginGrace() ?? loop.now().later(by: closeGrace(of: owner))
  }

  /// Reports that a `__close` was cut; `waits` is what it waited in, and where, or nil when it was busy.
  fileprivate func reportCutClose(of owner: FiberOwner, waits: ByteString?) {
    switch owner {
    case .op, .machine: owner.context?.reportCutClose(waits: waits)
    case .task(let task): task.reportCutClose(waits: waits, grace: owner.grace)
    case .callback(let run, _), .predicate(let run, _), .delay(let run, _):
      run.reportCutClose(waits: waits, grace: nil)
    case .cleanup: break
    }
  }

  /// Takes what has stopped a busy coroutine, and releases that.
  func takeStop(_ coroutine: LuaCoroutine, of owner: FiberOwner) -> ByteString {
    // A cleanup that is cut is reported as one.
    if owner.hasGrace, vm.hasCutClose(coroutine) { reportCutClose(of: owner, waits: nil) }
    let traceback = ByteString(vm.stopTraceback(coroutine))
    vm.release(coroutine, finished: false)
    return traceback
  }

  /// Runs a stretch of a script's code for its owner: what it starts meanwhile belongs to that.
  func run<Result>(_ owner: FiberOwner, _ body: () -> Result) -> Result {
    let outer = enter(owner)
    defer { current = outer }
    return body()
  }

  /// Begins a stretch of a script's code; whoever calls this ends it by putting back what it answers.
  fileprivate func enter(_ owner: FiberOwner) -> Current {
    let outer = current
    current.task = nil
    switch owner {
    case .op(let context), .cleanup(let context, _): current.op = .passUnretained(context)
    case .callback(let owner, _), .predicate(let owner, _), .delay(let owner, _):
      current.op = nil
      current.run = .passUnretained(owner)
    case .machine(let call, _): current.op = call.context.map { .passUnretained($0) }
    case .task(let code): _ = enter(code)
    }
    return outer
  }

  /// The same for the function of a task.
  private func enter(_ code: ScriptTask) -> Current {
    let outer = current
    current = Current(op: code.holdOp(), run: nil, task: .passUnretained(code))
    return outer
  }

  /// A deadline of the loop's clock on the monotonic one, which a watchdog goes by: a virtual clock
  /// doesn't move while a script is busy.
  func watchDeadline(_ deadline: Int64) -> Int64 {
    guard deadline != .max else { return .max }
    let (left, overflow) = deadline.subtractingReportingOverflow(loop.now())
    let (sum, isFar) = LuaVM.monotonicTime.addingReportingOverflow(max(left, 0))
    return overflow || isFar ? .max : sum
  }

  /// Why a coroutine ended that neither returned nor waits. The coroutine is still to be released.
  func takeFailure(_ step: LuaStep, op: ByteString?) -> FlowError {
    switch step.outcome {
    case .failed: return flowError(of: vm.failure(step.coroutine), op: op)
    case .yielded:
      return FlowError(.usage, "attempt to yield from outside a coroutine", op: op)
    default:
      return FlowError(.error, "stopped", op: op)
    }
  }

  /// A Swift error as an engine error.
  func flowError(thrown error: any Error, op: ByteString?) -> FlowError {
    if let error = error as? FlowError { return error }
    return FlowError.from(error).with { $0.op = op }
  }

  /// Runs a function as a coroutine that may wait; its owner is told once how it ended, perhaps at once.
  ///
  /// - Returns: The coroutine if it waits.
  @discardableResult
  func runFiber(
    _ function: LuaReference, _ arguments: [LuaValue], owner: FiberOwner
  ) -> Fiber? {
    let limit = watchDeadline(owner.deadline)
    do {
      let step = try run(owner) {
        Result {
          try vm.start(
            function, arguments, deadline: limit == .max ? 0 : limit,
            grace: limit == .max ? 0 : closeGrace(of: owner))
        }
      }.get()
      return take(step, owner, limit)
    } catch {
      owner.finish(.failed(flowError(thrown: error, op: nil)), self)
      return nil
    }
  }

  /// The same for the function of a task that has been spawned.
  func runFiber(
    _ function: consuming LuaUniqueReference, _ arguments: [LuaValue],
    of code: ScriptTask
  ) -> Fiber? {
    let limit = watchDeadline(code.ownerDeadline)
    let outer = enter(code)
    do {
      let step = try vm.start(
        function, arguments, deadline: limit == .max ? 0 : limit,
        grace: limit == .max ? 0 : closeGrace(code.op?.grace))
      current = outer
      return take(step, .task(code), limit)
    } catch {
      current = outer
      code.ended(.failed(flowError(thrown: error, op: nil)))
      return nil
    }
  }

  /// The same for a continuation.
  func runFiber(
    _ function: consuming LuaUniqueReference, _ argument: LuaValue, of code: ScriptTask
  ) -> Fiber? {
    let limit = watchDeadline(code.ownerDeadline)
    let outer = enter(code)
    let progress = vm.run(
      function, argument, deadline: limit == .max ? 0 : limit,
      grace: limit == .max ? 0 : closeGrace(code.op?.grace))
    current = outer
    return take(progress, code, limit)
  }

  /// The same with a scalar as the argument.
  func runFiber(
    _ function: consuming LuaUniqueReference, scalar: LuaScalar, of code: ScriptTask
  ) -> Fiber? {
    let limit = watchDeadline(code.ownerDeadline)
    let outer = enter(code)
    let progress = vm.run(
      function, scalar: scalar, deadline: limit == .max ? 0 : limit,
      grace: limit == .max ? 0 : closeGrace(code.op?.grace))
    current = outer
    return take(progress, code, limit)
  }

  /// Takes how far the function of a continuation has got from its start; answers its coroutine if it
  /// waits.
  private func take(_ progress: LuaProgress, _ code: ScriptTask, _ limit: Int64) -> Fiber? {
    switch progress {
    case .returned(let scalar): code.returned(scalar: scalar)
    case .step(let step): return take(step, .task(code), limit)
    case .refused: code.ended(.failed(flowError(thrown: vm.refusal, op: nil)))
    }
    return nil
  }

  /// Takes how far a coroutine has got from its start; answers it if it waits.
  private func take(_ step: LuaStep, _ owner: FiberOwner, _ limit: Int64) -> Fiber? {
    switch step.outcome {
    case .parked:
      if limit != .max { vm.unwatch(step.coroutine) }
      let fiber = Fiber(self, step.coroutine, owner: owner)
      fiber.park()
      return fiber
    case .finished:
      let result: Fiber.End
      do {
        result = .returned(try vm.firstResult(step))
      } catch {
        result = .failed(flowError(thrown: error, op: nil))
      }
      vm.release(step.coroutine, finished: true)
      owner.finish(result, self)
    case .stopped where limit != .max || isWorker || owner.isCleanup:
      let traceback = takeStop(step.coroutine, of: owner)
      owner.finish(.failed(owner.expire().located(by: traceback)), self)
    case .failed, .yielded, .stopped:
      let error = takeFailure(step, op: nil)
      vm.release(step.coroutine, finished: false)
      owner.finish(.failed(error), self)
    }
    return nil
  }
}
