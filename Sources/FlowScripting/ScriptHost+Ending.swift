public import FlowEngine
internal import LuaVM

/// How scripts end: by themselves, by Ctrl-C, or with the process.
extension ScriptHost {
  /// How the wait for the end of everything came out.
  public enum Ending: Sendable {
    /// Every run and task has settled.
    case settled
    /// An interruption has come, and all were cancelled because of it.
    case interrupted
  }

  static let interruption: ByteString = "interrupted!"
  static let termination: ByteString = "terminated"

  /// Goes on until every run and task has settled and nothing is left to do. Runs that nothing can end any
  /// more fail as stalled; an interruption cancels them all.
  @discardableResult
  public func runToEnd() -> Ending {
    var stalls = StallPass(times: 2)
    var isIdle = false
    while !isIdle {
      // An op that ignores the first request is ended by the second.
      isIdle =
        !loop.run(until: { vm.hasRequest || isTerminating }) && !stalls.failNext(on: loop)
      switch takeRequest() {
      case .termination:
        terminate()
        return .settled
      case .interruption:
        cancelEverything(reason: Self.interruption)
        return .interrupted
      case nil: break
      }
    }
    return .settled
  }

  /// Cancels all runs and tasks, those included that their cleanups start, and goes on until all have
  /// settled. Not to be called by what one of them runs.
  ///
  /// - Parameter reason: What they show as the reason; nil for none.
  public func cancelEverything(reason: ByteString?) {
    cancelEverything(.cancelled(reason: reason))
  }

  /// The same because of an error.
  func cancelEverything(_ error: FlowError) {
    onCancellation?(true)
    defer { if !isTerminating { onCancellation?(false) } }
    // Those of ops are stopped by them, unless they are part of a cleanup.
    loop.cancelLooseProcesses(of: ObjectIdentifier(self))
    var stalls = StallPass(times: 2)
    var newest: UInt64 = 0
    // A callback may start a flow anew whenever that is cancelled.
    var rounds = 100
    repeat {
      rounds -= 1
      for task in loop.pendingTasks where task.id > newest { task.stop(error) }
      newest = loop.newestTask
      while !loop.run(until: { [loop] in loop.pendingTaskCount == 0 || loop.newestTask != newest }),
        stalls.failNext(on: loop)
      {}
    } while loop.pendingTaskCount > 0 && loop.newestTask != newest && rounds > 0
  }

  /// Cancels everything for the end of the process; ends it if no op is executing below.
  ///
  /// An op that is has a moment for its cleanup. The wait that it then comes back to calls this again.
  func terminate() {
    if !isTerminating {
      isTerminating = true
      onTerminationRequest?()
    }
    guard !vm.runsScheduledCoroutine else {
      onCancellation?(true)
      for task in loop.pendingTasks { task.cancel(reason: Self.termination) }
      limitCleanup()
      return
    }
    cancelEverything(reason: Self.termination)
    onTermination?()
  }

  /// A signal has come while ops execute that never run Lua code, nor wait: cancels them. Whoever started
  /// them takes the request.
  func cancelForRequest() {
    let isEnd = vm.isAskedToEnd
    for task in isEnd ? loop.pendingTasks : chunk?.tasks.all ?? loop.pendingTasks {
      task.cancel(reason: isEnd ? Self.termination : Self.interruption)
    }
  }

  /// An interruption is about to be raised in code that is busy; false when that is a cleanup, of which it
  /// only limits the time.
  func noteInterruption() -> Bool {
    guard executesCleanup else {
      chunk?.noteInterruption(isWithin: currentOp != nil || currentTask != nil)
      return true
    }
    interruptAround()
    return false
  }

  /// An interruption has come in a cleanup: it cancels everything else.
  private func interruptAround() {
    onCancellation?(true)
    for task in loop.pendingTasks { task.cancel(reason: Self.interruption) }
    limitCleanup()
  }

  /// Takes what signals ask for while a cleanup waits in place: nothing is raised there.
  func answerInCleanup() {
    switch takeRequest() {
    case .termination: terminate()
    case .interruption: interruptAround()
    case nil: break
    }
  }

  /// Whether the code that runs is a cleanup of an op, or what a flow calls after its end.
  var executesCleanup: Bool {
    if currentTask != nil { return false }
    return currentOp?.isCleaningUp ?? currentRun?.isCallingBack ?? false
  }

  /// Stops a cleanup that is busy, and now has a grace, at its end.
  private func limitCleanup() {
    guard executesCleanup else { return }
    let deadline = currentOp?.cleanupDeadline ?? currentRun?.cleanupDeadline ?? .max
    let limit = watchDeadline(deadline)
    if limit != .max { vm.watchActivity(deadline: limit, grace: loop.gracePeriod) }
  }

  /// What signals ask for.
  enum Request { case termination, interruption }

  /// What signals ask for, from now on answered by the caller: nothing is raised for it elsewhere.
  func takeRequest() -> Request? {
    if vm.takeAttention() { vm.onAttention?() }
    let isTermination = vm.takeTermination() || isTerminating
    let isInterruption = vm.takeInterruption()
    return isTermination ? .termination : isInterruption ? .interruption : nil
  }

  /// Answers a request while the main chunk, or a C function, waits in place.
  ///
  /// - Parameter request: What is asked.
  /// - Returns: The error to end the wait with.
  func answer(_ request: Request) -> any Error {
    switch request {
    case .termination:
      terminate()
      // Still here: it waits in an op, which has to unwind.
      return raise(.cancelled(reason: Self.termination))
    case .interruption:
      // Within an op it is that op's error, as if it had been busy.
      if !vm.runsScheduledCoroutine {
        if let chunk {
          cancel(chunk, reason: Self.interruption)
        } else {
          cancelEverything(reason: Self.interruption)
        }
      } else {
        chunk?.noteInterruption(isWithin: true)
      }
      let message = LuaString(ByteString(vm.position) + Self.interruption)
      return LuaError(value: .string(message), message: message)
    }
  }
}
