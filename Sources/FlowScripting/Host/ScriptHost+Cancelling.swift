internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

extension ScriptHost {
  /// Cancels what the host runs, from any thread: hand it over before the host's thread is busy.
  ///
  /// ```swift
  /// let canceller = host.canceller
  /// Task { try await shutdownRequest(); canceller.cancel(reason: "shutting down") }
  /// ```
  public var canceller: ScriptCanceller {
    if let openCanceller { return openCanceller }
    let made = ScriptCanceller()
    made.begin()
    attach(made)
    return made
  }

  /// Cancels everything that the host runs; see `ScriptCanceller.cancel`. On the host's thread: soon, when its
  /// code or its loop continues.
  public func cancel(reason: String? = nil) { canceller.cancel(reason: reason) }

  /// Lets a canceller that was taken for this host, and may have been used, cancel what the host runs.
  func attach(_ canceller: ScriptCanceller) {
    openCanceller = canceller
    if isWorker { misuse("the host of a worker has no canceller") }
    canceller.attach(to: self)
  }

  /// Sets the alarm for the time limit, or removes it.
  func limitTime() {
    // A limit that has just ended has made its request.
    timeAlarm?.cancel()
    timeAlarm = nil
    guard isOpen, let timeLimit else { return }
    let error = FlowError(.time, "the time limit of \(FlowValue.text(of: timeLimit)) was exceeded")
    let canceller = canceller
    let end = LuaVM.monotonicTime.later(by: max(timeLimit, .zero).clampedNanoseconds)
    timeAlarm = LuaAlarm(at: end) { canceller.cancel(error) }
    if timeAlarm == nil {
      canceller.cancel(
        FlowError(.error, "the time can't be limited: the system gives no thread for it"))
    }
  }

  /// Stops everything because of a cancellation, if there is one.
  ///
  /// - Parameter isInCode: Whether the state's code is executing, and has called this between two of its
  ///   instructions.
  func takeCancellation(isInCode: Bool) {
    guard let error = openCanceller?.take() else { return }
    if loop.pendingTaskCount > 0 { onCancellation?(true) }
    stopTasks(error)
    guard isInCode else { return }
    if !vm.runsScheduledCoroutine {
      mainCancellation = nil
      let raised = raise(error)
      // The call of a function with a deadline throws it, whatever that function catches.
      if vm.stopCalls(throwing: raised) { return }
      // Without memory for the error it has no reason.
      guard case .reference(let value)? = (raised as? LuaError)?.value else { return }
      vm.interrupt(raising: value)
    } else if executesCleanup {
      limitCleanup()
    } else {
      // One that hasn't waited yet isn't pending.
      currentTask?.stop(error)
      vm.watchActivity(deadline: LuaVM.monotonicTime, grace: closeGrace(currentOp?.grace))
    }
  }

  /// Stops all runs, tasks, programs and requests, and the innermost wait of the main chunk.
  func stopTasks(_ error: FlowError) {
    if mainWaits > 0 { mainCancellation = error }
    stopLooseWork(error)
    for task in loop.pendingTasks { task.stop(error) }
  }

  /// Stops programs and requests that no op and no task has started: those of ops are stopped by them, unless they
  /// belong to a cleanup.
  func stopLooseWork(_ error: FlowError) {
    loop.cancelLooseProcesses(of: ObjectIdentifier(self), because: error)
    loop.cancelLooseRequests(of: ObjectIdentifier(self), because: error)
  }

  /// Records the end of a wait of the main chunk.
  func endMainWait() {
    mainWaits -= 1
    if mainWaits == 0 { mainCancellation = nil }
  }
}
