public import FlowEngine
internal import FlowHTTP
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// The end of scripts: by themselves, by Ctrl-C, or with the process.
extension ScriptHost {
  /// The outcome of the wait for the end of everything.
  ///
  /// ```swift
  /// if host.runToEnd() == .interrupted { print("stopped by Ctrl-C") }
  /// ```
  public enum Ending: Sendable {
    /// Every run and task has settled.
    case settled
    /// An interruption, or `cancel` of the host, has cancelled everything.
    case interrupted
  }

  /// The state for the end of the script, and the lines that are written then.
  struct EndState {
    /// Set once the end of the process has been requested.
    var isTerminating = false
    /// Whether everything is being cancelled, as at Ctrl-C.
    var isCancellingEverything = false
    /// Whether the last cleanups before that end are executing.
    var isEndingProcess = false
    /// The first flow with a step, and the origin of the call that added it.
    var builtFlow: (name: ByteString, origin: UInt64)?
    /// Whether a flow was described, or its code digested.
    var describesFlows = false
    /// The origin of the first call with an option `cache`.
    var originOfCache: UInt64?
    /// The first thousand of the warnings that are given once.
    var givenWarnings: Set<ByteString> = []
  }

  /// Whether the process ends, or everything is being cancelled.
  package var endsEverything: Bool { ending.isTerminating || ending.isCancellingEverything }

  static let interruption: ByteString = "interrupted!"
  package static let termination: ByteString = "terminated"

  /// Runs until every run and task has settled and nothing is left to do. Runs that nothing can end
  /// any more fail as stalled; an interruption cancels all of them.
  @discardableResult
  public func runToEnd() -> Ending {
    var stalls = StallPass(times: 2)
    var isIdle = false
    while !isIdle {
      // An op that ignores the first stop is ended by the second.
      isIdle =
        !loop.turn(until: { hasRequest || ending.isTerminating }) && !endsForMessages()
        && !stalls.failNext(on: loop)
      switch takeRequest() {
      case .termination:
        terminate()
        return .settled
      case .interruption:
        cancelEverything(reason: Self.interruption)
        return .interrupted
      case .cancellation(let error):
        cancelEverything(error)
        return .interrupted
      case nil: break
      }
    }
    return .settled
  }

  /// Gives a warning, unless it has been given.
  func warnOnce(_ text: ByteString) {
    guard let onWarning = events.onWarning, ending.givenWarnings.count < 1000,
      ending.givenWarnings.insert(text).inserted
    else {
      return
    }
    onWarning(text)
  }

  /// Warnings at the end of a script about options that it has written in vain.
  package var warningsAtEnd: [ByteString] {
    // A script that describes flows, or compares their code, needn't run them.
    if ending.describesFlows { return [] }
    if loop.newestTask == 0 {
      guard let (name, origin) = ending.builtFlow else { return [] }
      let place = vm.text(ofOrigin: origin)
      return [
        "warning: flow '\(name)' at \(place) was built, but nothing was run: flow:run() is missing"
      ]
    }
    guard keeping == nil, let originOfCache = ending.originOfCache else { return [] }
    let place = vm.text(ofOrigin: originOfCache)
    return [
      "warning: 'cache' at \(place) has had no effect: without --keep or flow.keep() no result is kept"
    ]
  }

  /// Cancels all runs and tasks, including those that their cleanups start, and runs until all have
  /// settled. Code of a run or task must not call it.
  ///
  /// - Parameter reason: The reason that they show; nil for none.
  public func cancelEverything(reason: (any FlowText)?) {
    cancelEverything(.cancelled(reason: reason))
  }

  /// Cancels everything because of an error.
  func cancelEverything(_ error: FlowError) {
    events.onCancellation?(true)
    // Within one of them another one may begin.
    let isOutermost = !ending.isCancellingEverything
    ending.isCancellingEverything = true
    defer {
      if isOutermost { ending.isCancellingEverything = false }
      if !ending.isTerminating { events.onCancellation?(false) }
    }
    stopLooseWork(error)
    var stalls = StallPass(times: 2)
    var newest: UInt64 = 0
    // A callback may start a flow again whenever the previous one is cancelled.
    var rounds = 100
    repeat {
      rounds -= 1
      for task in loop.pendingTasks where task.id > newest { task.stop(error) }
      newest = loop.newestTask
      // Programs without an op or a task have their grace, too.
      while !loop.turn(until: { [loop, vm] in
        loop.newestTask != newest || vm.isAskedToEnd
          || (loop.pendingTaskCount == 0 && !loop.areProgramsEnding)
      }),
        stalls.failNext(on: loop)
      {}
      // It has the same cleanups to wait for, and says how the process ends.
      if vm.takeTermination() { terminate() }
    } while loop.pendingTaskCount > 0 && loop.newestTask != newest && rounds > 0
  }

  /// Cancels everything for the end of the process; ends it if no op is executing below.
  ///
  /// An executing op has a moment for its cleanup. The code below, or the wait to which it returns,
  /// calls this again.
  func terminate() {
    if !ending.isTerminating {
      ending.isTerminating = true
      keeping?.suspend()
      events.onTerminationRequest?()
    }
    guard !vm.runsScheduledCoroutine, !loop.isExecuting else {
      events.onCancellation?(true)
      for task in loop.pendingTasks { task.cancel(reason: Self.termination) }
      limitBusyCode()
      if ending.isEndingProcess { return }
      if vm.runsScheduledCoroutine {
        vm.repeatTerminationAfterActivity()
      } else {
        // Between the code of ops: their cleanups are to come.
        loop.afterExecuting { [vm] in vm.requestTermination() }
      }
      return
    }
    ending.isEndingProcess = true
    cancelEverything(reason: Self.termination)
    closeRemote(isTerminated: true)
    events.onTerminated?()
    TemporaryPaths.shared.removeAll()
    events.onTermination?()
  }

  /// Handles requests while ops execute that neither run Lua code nor wait. A signal cancels them; their
  /// starter takes its request. Cancellations of another thread are left to Lua code and to the loop's next turn:
  /// an op that is about to begin, as one is here, couldn't be stopped yet, and would be missed.
  func noteRequests() {
    // The signal of a cancellation is repeated until it is taken.
    if vm.takeAttention() { vm.onAttention?() }
    let isEnd = vm.isAskedToEnd
    guard isEnd || vm.isAskedToInterrupt else { return }
    events.onCancellation?(true)
    if isEnd { keeping?.suspend() }
    for task in isEnd ? loop.pendingTasks : chunkTasks?.all ?? loop.pendingTasks {
      task.cancel(reason: isEnd ? Self.termination : Self.interruption)
    }
  }

  /// An interruption is about to be raised in busy code; returns false in a cleanup, whose time it
  /// only limits.
  func noteInterruption() -> Bool {
    if loop.checking != nil {
      interruptCheck()
      return false
    }
    guard executesCleanup else {
      let isWithin = currentOp != nil || currentTask != nil
      // The cleanup of its op follows.
      if isWithin { events.onCancellation?(true) }
      chunk?.noteInterruption(isWithin: isWithin)
      return true
    }
    interruptAround(.cancelled(reason: Self.interruption))
    return false
  }

  /// An interruption while a function executes that the engine needs at once: it ends with its execution, and the
  /// code that runs that takes the request.
  func interruptCheck() {
    events.onCancellation?(true)
    for task in chunkTasks?.all ?? loop.pendingTasks { task.cancel(reason: Self.interruption) }
    limitBusyCode()
    loop.afterExecuting { [vm] in vm.requestInterruption() }
  }

  /// An interruption in a cleanup: it cancels everything else.
  private func interruptAround(_ error: FlowError) {
    events.onCancellation?(true)
    for task in loop.pendingTasks { task.stop(error) }
    limitCleanup()
  }

  /// Takes requests of signals while a cleanup waits in place: nothing is raised there.
  func answerInCleanup() {
    switch takeRequest() {
    case .termination: terminate()
    case .interruption: interruptAround(.cancelled(reason: Self.interruption))
    case .cancellation(let error): interruptAround(error)
    case nil: break
    }
  }

  /// Whether the running code is a cleanup of an op, or a callback of a flow after its end.
  var executesCleanup: Bool {
    if currentTask != nil { return false }
    return currentOp?.isCleaningUp ?? currentRun?.isCallingBack ?? false
  }

  /// Stops the code that executes, if it stays busy although everything is being cancelled.
  private func limitBusyCode() {
    for call in callsInPlace { call.limit(self) }
    if executesCleanup { return limitCleanup() }
    vm.watchActivity(
      deadline: LuaVM.monotonicTime.later(by: busyGrace), grace: closeGrace(currentOp?.grace))
  }

  /// Stops a busy cleanup, which now has a grace, at the end of that grace.
  func limitCleanup() {
    guard executesCleanup else { return }
    let deadline = currentOp?.cleanupDeadline ?? currentRun?.cleanupDeadline ?? .max
    let limit = watchDeadline(deadline)
    if limit != .max {
      vm.watchActivity(deadline: limit, grace: loop.gracePeriod.clampedNanoseconds)
    }
  }

  /// Whether there is a request, or a signal for the script itself.
  var hasRequest: Bool { vm.hasRequest || !isWorker && flowsystem_has_stop() }

  /// A request of signals, or of `cancel`.
  package enum Request {
    case termination, interruption
    case cancellation(FlowError)
  }

  /// The request of signals or of `cancel`. The caller handles it from now on: nothing is raised for it
  /// elsewhere.
  package func takeRequest() -> Request? {
    if !isWorker, flowsystem_has_stop() { StopBindings.take(for: self) }
    if vm.takeAttention() { vm.onAttention?() }
    let isTermination = vm.takeTermination() || ending.isTerminating
    let isInterruption = vm.takeInterruption()
    if isTermination { return .termination }
    if isInterruption { return .interruption }
    return takeCancellation().map { .cancellation($0) }
  }

  /// Handles a request while the main chunk, or a C function, waits in place.
  ///
  /// - Parameter request: The request.
  /// - Returns: The error to end the wait with.
  func answer(_ request: Request) -> any Error {
    switch request {
    case .termination:
      terminate()
      // The process still runs: it waits in an op, which has to unwind.
      return raise(.cancelled(reason: Self.termination))
    case .cancellation(let error):
      if vm.runsScheduledCoroutine {
        stopTasks(error)
      } else {
        cancelEverything(error)
      }
      return raise(error)
    case .interruption:
      // Within an op it is that op's error, as it is in busy code.
      if !vm.runsScheduledCoroutine {
        if let chunk {
          cancel(chunk, reason: Self.interruption)
        } else {
          cancelEverything(reason: Self.interruption)
        }
      } else {
        chunk?.noteInterruption(isWithin: true)
      }
      let message = vm.position + Self.interruption
      return LuaError(value: .string(message), message: message)
    }
  }
}
