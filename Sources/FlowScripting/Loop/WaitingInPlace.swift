@_spi(Scripting) internal import FlowEngine
public import LuaVM

/// Waits of code that can't be parked: of the main chunk, and below a C function.
extension ScriptHost: LuaScheduler {
  /// Runs the loop until the wait is ready, or what waits has to stop.
  public func pump(_ wait: LuaWait) {
    let code = CodeInPlace(self)
    let isClosing = !cutsCloses && vm.runsScheduledCoroutine && vm.runsClose
    let isCleanup = isClosing || vm.runsScheduledCoroutine && executesCleanup
    var stalls = StallPass(times: 1)
    while !wait.isReady {
      let stopError = code.stopError
      // Nothing is raised in a `__close` while it has its grace.
      let isSpared =
        isClosing && (stopError != nil || vm.isAskedToStop) && vm.sparesClose
      if !isSpared, let error = stopError {
        code.stop(error)
        wait.fail(raise(error))
        // As for a coroutine that is parked; see `Fiber.cancel`.
        if error.kind == .cancelled, error.seconds == nil { (wait as? TaskWait)?.stopTarget(error) }
      } else if !isSpared, vm.isAskedToStop {
        wait.fail(raise(code.expire()))
      } else if vm.isEnclosureStopped {
        wait.fail(raise(.cancelled()))
      } else if loop.run(until: {
        wait.isReady || vm.hasRequest || vm.isAskedToStop
          || !isCleanup && isTerminating || !isSpared && code.stopError != nil
      }) {
        if isCleanup {
          if vm.hasRequest { answerInCleanup() }
        } else if let request = takeRequest() {
          wait.fail(answer(request))
        }
      } else {
        // Nothing can continue. What is pending fails first, which may end the wait. Asked twice, an op
        // would be ended even while it stands below on the stack.
        guard stalls.failNext(on: loop) else { break }
      }
    }
    if !wait.isReady {
      let error = FlowError(
        .stalled, "stalled: nothing can end this wait",
        traceback: ByteString(vm.traceback(level: 1)))
      wait.fail(raise(error))
    }
  }
}

/// The code below on the stack, which the loop runs on top of.
struct CodeInPlace {
  private let host: ScriptHost
  // Unmanaged, all of it: what runs the code retains it until the code continues.
  private let current: ScriptHost.Current
  private let fiber: Unmanaged<Fiber>?

  init(_ host: ScriptHost) {
    self.host = host
    current = host.current
    fiber = host.fiber.flatMap { fiber in
      fiber._withUnsafeGuaranteedRef { $0.isInnermost } ? fiber : nil
    }
  }

  /// Whether there is anything to do but to run the loop.
  var hasToLook: Bool {
    host.vm.hasRequest || host.isTerminating || host.vm.isAskedToStop || stopError != nil
  }

  /// Why the code is to stop; nil when nothing but the watchdog stops it.
  var stopError: FlowError? {
    if let error = fiber?._withUnsafeGuaranteedRef({ $0.stopError }) { return error }
    if let error = host.loop.checkStopError { return error }
    if let task = current.task?.takeUnretainedValue() {
      return task.stopError ?? task.owner?.stopError
    }
    if let op = current.op?.takeUnretainedValue() { return op.stopError ?? op.starterStopError }
    return current.run?.takeUnretainedValue().callbackStopError
  }

  /// Stops what the code belongs to when it is only what has started that which stops: by itself that would
  /// do so once this code has ended.
  func stop(_ error: FlowError) {
    if let task = current.task?.takeUnretainedValue() {
      if task.stopError == nil, task.owner?.stopError != nil { task.stop(error) }
    } else if let op = current.op?.takeUnretainedValue() {
      if op.stopError == nil, op.starterStopError != nil { op.run.stop(error) }
    }
  }

  /// Records that the watchdog stops the code; returns the error that it ends with.
  func expire() -> FlowError {
    if let task = current.task?.takeUnretainedValue() { return task.expire() }
    guard let op = current.op?.takeUnretainedValue(), !op.isCleaningUp else { return .cancelled() }
    return op.expire()
  }
}
