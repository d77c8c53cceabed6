@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) package import LuaVM

/// Waits of code that can't be parked: of the main chunk, and of code below a C function.
extension ScriptHost: LuaScheduler {
  /// Runs the loop until the wait is ready, or until the waiting code has to stop.
  package func pump(_ wait: LuaWait) {
    let code = CodeInPlace(self)
    let isClosing = !cutsCloses && vm.runsScheduledCoroutine && vm.runsClose
    let isCleanup = isClosing || vm.runsScheduledCoroutine && executesCleanup
    let isMain = !vm.runsScheduledCoroutine
    if isMain { mainWaits += 1 }
    defer {
      if isMain { endMainWait() }
      // The code that continues may be busy for long.
      openRemote?.sendWaitingReplies()
    }
    var stalls = StallPass(times: 1)
    while !wait.isReady {
      let stopError = code.stopError
      // Nothing is raised in a `__close` within its grace.
      let isSpared =
        isClosing && (stopError != nil || vm.isAskedToStop) && vm.sparesClose
      if !isSpared, let error = stopError {
        code.stop(error)
        wait.fail(raise(error))
        // As for a parked coroutine; see `Fiber.cancel`.
        if error.kind == .cancelled, error.limit == nil { (wait as? TaskWait)?.stopTarget(error) }
      } else if !isSpared, vm.isAskedToStop {
        wait.fail(raise(code.expire()))
      } else if vm.isEnclosureStopped {
        wait.fail(raise(.cancelled()))
      } else if isMain, let error = mainCancellation.take() {
        wait.fail(raise(error))
      } else if loop.run(until: {
        wait.isReady || vm.hasRequest || vm.isAskedToStop
          || !isCleanup && isTerminating || !isSpared && code.stopError != nil
          || isMain && mainCancellation != nil
      }) {
        if isCleanup {
          if vm.hasRequest { answerInCleanup() }
        } else if let request = takeRequest() {
          wait.fail(answer(request))
        }
      } else {
        // Nothing can continue. Pending tasks fail first, which may end the wait. A second attempt
        // would end an op even while it is below on the stack.
        guard stalls.failNext(on: loop) else { break }
      }
    }
    if !wait.isReady {
      let error = FlowError(
        .stalled, "stalled: nothing can end this wait",
        traceback: vm.tracebackBytes(level: 1))
      wait.fail(raise(error))
    }
  }
}

/// The code below on the stack, on top of which the loop runs.
struct CodeInPlace {
  private let host: ScriptHost
  // Unmanaged, all of it: the caller that runs the code retains it until the code continues.
  private let current: ScriptHost.Current
  private let fiber: Unmanaged<Fiber>?

  init(_ host: ScriptHost) {
    self.host = host
    current = host.current
    fiber = host.fiber.flatMap { fiber in
      fiber._withUnsafeGuaranteedRef { $0.isInnermost } ? fiber : nil
    }
  }

  /// Whether the wait has to do more than run the loop.
  var hasToLook: Bool {
    host.vm.hasRequest || host.isTerminating || host.vm.isAskedToStop || stopError != nil
  }

  /// The error that stops the code; nil if only the watchdog stops it.
  var stopError: FlowError? {
    if let error = fiber?._withUnsafeGuaranteedRef({ $0.stopError }) { return error }
    let loop = Unmanaged.passUnretained(host.loop)
    if let error = loop._withUnsafeGuaranteedRef({ $0.checkStopError }) { return error }
    if let task = current.task?.takeUnretainedValue() {
      return task.stopError ?? task.owner?.stopError
    }
    if let op = current.op?.takeUnretainedValue() { return op.stopError ?? op.starterStopError }
    return current.run?.takeUnretainedValue().callbackStopError
  }

  /// Stops the owner of the code if only the code's starter is being stopped: by itself the owner
  /// would stop after this code has ended.
  func stop(_ error: FlowError) {
    if let task = current.task?.takeUnretainedValue() {
      if task.stopError == nil, task.owner?.stopError != nil { task.stop(error) }
    } else if let op = current.op?.takeUnretainedValue() {
      if op.stopError == nil, op.starterStopError != nil { op.run.stop(error) }
    }
  }

  /// Records that the watchdog stops the code; returns the error with which it ends.
  func expire() -> FlowError {
    if let task = current.task?.takeUnretainedValue() { return task.expire() }
    guard let op = current.op?.takeUnretainedValue(), !op.isCleaningUp else { return .cancelled() }
    return op.expire()
  }
}
