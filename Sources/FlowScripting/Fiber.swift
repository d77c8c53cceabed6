internal import FlowEngine
internal import LuaVM

/// What limits a coroutine's time, and what it belongs to.
enum FiberOwner {
  /// The code of an op.
  case op(OpContext)
  /// A cleanup of an op.
  case cleanup(OpContext, CallbackCompletion)
  /// A callback or predicate of a flow.
  case callback(Run, CallbackCompletion)

  /// When a busy coroutine has to be stopped, on the loop's clock; `.max` for never.
  var deadline: Int64 {
    switch self {
    case .op(let context): context.deadline
    case .cleanup(_, let completion), .callback(_, let completion): completion.deadline
    }
  }

  /// What a coroutine ends with that was stopped at the deadline.
  func expire() -> FlowError {
    switch self {
    case .op(let context): context.expire()
    case .cleanup(_, let completion), .callback(_, let completion): completion.expire()
    }
  }
}

/// A coroutine of a script that waits: an op's, or a callback's. It goes on when its wait is ready.
final class Fiber: LoopJob {
  /// How a fiber ended.
  enum End {
    case returned(LuaValue)
    case failed(FlowError)
  }

  private let host: ScriptHost
  private let coroutine: LuaCoroutine
  private let op: ByteString?
  private let owner: FiberOwner
  private var completion: ((End) -> Void)?
  /// The wait: it must live until the coroutine has taken its results.
  private var wait: LuaWait?
  /// Set once the fiber has been asked to end: raised at this wait and at every further one.
  private var cancellation: FlowError?
  /// When a fiber that goes on regardless is closed: a time of the monotonic clock, also where the
  /// loop's own clock is virtual, since it is a script's own running time that is limited.
  private var graceEnd: Int64 = .max
  private var isRunning = false
  /// Set when it is to be closed as soon as it doesn't run.
  private var closing: FlowError?

  /// How long code that a timeout was raised in may go on, in nanoseconds: enough to pass the error on,
  /// as there is no grace for timeouts.
  static let unwindTime: Int64 = 10_000_000

  init(
    _ host: ScriptHost, _ coroutine: LuaCoroutine, op: ByteString?, owner: FiberOwner,
    completion: @escaping (End) -> Void
  ) {
    self.host = host
    self.coroutine = coroutine
    self.op = op
    self.owner = owner
    self.completion = completion
  }

  /// Waits for what the coroutine has parked on.
  func park() {
    guard let wait = host.vm.parkedWait() else {
      end(.failed(FlowError(.error, "a coroutine parked without a wait", op: op)), finished: false)
      return
    }
    self.wait = wait
    if let closing {
      close(closing)
      return
    }
    if let cancellation {
      if LuaVM.monotonicTime >= graceEnd {
        close(cancellation)
        return
      }
      wait.fail(host.raise(cancellation))
    }
    if wait.isReady {
      host.loop.enqueue(self)
    } else {
      wait.onReady = { [self] in host.loop.enqueue(self) }
    }
  }

  /// Raises an error at the wait, and at all later ones. A coroutine that goes on regardless is closed
  /// after the grace period, even when it is busy.
  func cancel(_ error: FlowError) {
    guard cancellation == nil else { return }
    cancellation = error
    let grace = error.kind == .timeout ? Self.unwindTime : host.loop.gracePeriod
    graceEnd = LuaVM.monotonicTime + grace
    wait?.fail(host.raise(error))
    // It may be below on the stack, or have asked for it itself.
    if isRunning {
      host.vm.watch(coroutine, deadline: graceEnd, grace: host.loop.gracePeriod)
    }
  }

  /// Ends it at once with `error`: its pending `__close`s run, but nothing else of it.
  func close(_ error: FlowError) {
    guard completion != nil else { return }
    if isRunning {
      closing = error
      return
    }
    wait?.abandon()
    wait = nil
    end(.failed(error), finished: false)
  }

  func run() {
    // It may have been closed meanwhile.
    guard completion != nil else { return }
    isRunning = true
    let step = host.run(owner) { () -> LuaStep in
      let limit = watchLimit
      if limit != .max {
        host.vm.watch(coroutine, deadline: limit, grace: host.loop.gracePeriod)
      }
      let step = host.vm.resume(coroutine)
      if limit != .max || cancellation != nil { host.vm.unwatch(coroutine) }
      return step
    }
    isRunning = false
    // Its results have been taken; the next wait, if any, is another one.
    wait = nil
    switch step.outcome {
    case .parked: park()
    case .finished:
      let result = Result { try host.vm.firstResult(step) }
      host.vm.release(coroutine, finished: true)
      finish(result.mapError { host.flowError(thrown: $0, op: op) }.end)
    case .stopped where cancellation == nil:
      host.vm.release(coroutine, finished: false)
      finish(.failed(owner.expire()))
    case .failed, .yielded, .stopped:
      end(.failed(host.takeFailure(step, op: op)), finished: false)
    }
  }

  /// When the coroutine has to be stopped if it is still busy, on the monotonic clock.
  private var watchLimit: Int64 {
    cancellation == nil ? host.watchDeadline(owner.deadline) : graceEnd
  }

  private func end(_ end: End, finished: Bool) {
    host.vm.release(coroutine, finished: finished)
    finish(end)
  }

  private func finish(_ end: End) {
    let completion = completion
    self.completion = nil
    completion?(cancellation.map { .failed($0) } ?? end)
  }
}

extension Result where Success == LuaValue, Failure == FlowError {
  fileprivate var end: Fiber.End {
    switch self {
    case .success(let value): .returned(value)
    case .failure(let error): .failed(error)
    }
  }
}

extension ScriptHost {
  /// Runs a stretch of a script's code for its owner: what it starts meanwhile belongs to that.
  func run<Result>(_ owner: FiberOwner, _ body: () -> Result) -> Result {
    let (op, run) = (currentOp, currentRun)
    defer { (currentOp, currentRun) = (op, run) }
    switch owner {
    case .op(let context), .cleanup(let context, _): currentOp = context
    case .callback(let owner, _):
      currentOp = nil
      currentRun = owner
    }
    return body()
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
    (error as? FlowError) ?? FlowError(.error, ByteString(describing: error), op: op)
  }

  /// Runs a function as a coroutine that may wait; `finish` is called once, perhaps at once.
  ///
  /// - Returns: The coroutine if it waits.
  @discardableResult
  func runFiber(
    _ function: LuaReference, _ arguments: [LuaValue], owner: FiberOwner,
    finish: @escaping (Fiber.End) -> Void
  ) -> Fiber? {
    do {
      let limit = watchDeadline(owner.deadline)
      let step = try run(owner) {
        Result {
          try vm.start(
            function, arguments, deadline: limit == .max ? 0 : limit, grace: loop.gracePeriod)
        }
      }.get()
      switch step.outcome {
      case .parked:
        if limit != .max { vm.unwatch(step.coroutine) }
        let fiber = Fiber(self, step.coroutine, op: nil, owner: owner, completion: finish)
        fiber.park()
        return fiber
      case .finished:
        let value = try vm.firstResult(step)
        vm.release(step.coroutine, finished: true)
        finish(.returned(value))
      case .stopped where limit != .max:
        vm.release(step.coroutine, finished: false)
        finish(.failed(owner.expire()))
      case .failed, .yielded, .stopped:
        let error = takeFailure(step, op: nil)
        vm.release(step.coroutine, finished: false)
        finish(.failed(error))
      }
    } catch {
      finish(.failed(flowError(thrown: error, op: nil)))
    }
    return nil
  }
}
