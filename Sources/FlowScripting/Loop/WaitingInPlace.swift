@_spi(Scripting) internal import FlowEngine
internal import FlowSystem
@_spi(Scripting) package import LuaVM

/// Waits of code that can't be parked, of the main chunk and of code below a C function, and waits for helper threads.
extension ScriptHost: LuaScheduler {
  /// Runs the loop until the wait is ready, or until the waiting code has to stop.
  package func pump(_ wait: LuaWait) {
    let code = CodeInPlace(self)
    loop.checking = nil
    let isClosing = !waitsInPlace.cutsCloses && vm.runsScheduledCoroutine && vm.runsClose
    let isCleanup = isClosing || vm.runsScheduledCoroutine && executesCleanup
    let isOfText = vm.takeTextWait()
    let isMain = !vm.runsScheduledCoroutine
    if isMain { beginMainWait() }
    defer {
      loop.checking = code.checking
      if isMain { endMainWait() }
      // The code that continues may be busy for long.
      remote?.sendWaitingReplies()
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
        (wait as? TaskWait)?.stopTarget(error)
      } else if !isSpared, vm.isAskedToStop {
        wait.fail(raise(code.expire()))
      } else if vm.isEnclosureStopped {
        wait.fail(raise(.cancelled()))
      } else if isMain, let error = waitsInPlace.cancellation.take() {
        wait.fail(raise(error))
      } else if isOfText, vm.hasSignal || vm.refusesTextWaits {
        // The code that needs the text handles it. The next text may wait as this one does.
        vm.refuseTextWaits()
        wait.fail(raise(.cancelled()))
      } else if turnInPlace(until: {
        wait.isReady || hasRequest || vm.isAskedToStop
          || !isCleanup && ending.isTerminating || !isSpared && code.stopError != nil
          || isMain && waitsInPlace.cancellation != nil
      }) {
        if isOfText, vm.hasSignal { continue }
        if isCleanup {
          if hasRequest { answerInCleanup() }
        } else if let request = takeRequest() {
          if case .interruption = request, code.checking != nil {
            interruptCheck()
          } else {
            wait.fail(answer(request))
          }
        }
      } else {
        // Nothing can continue. Pending tasks fail first, which may end the wait. A second attempt
        // would end an op even while it is below on the stack.
        guard endsForMessages() || stalls.failNext(on: loop) else { break }
      }
    }
    if !wait.isReady {
      let error = FlowError(
        .stalled, "stalled: nothing can end this wait",
        traceback: vm.traceback(level: 1))
      wait.fail(raise(error))
    }
  }

  /// Runs the loop on top of the running code. Code that runs meanwhile belongs to no request because of that.
  func turnInPlace(until done: () -> Bool) -> Bool {
    guard let codeWatch else { return loop.turn(until: done) }
    let outer = current
    current = Current()
    defer { current = outer }
    return codeWatch.outside { loop.turn(until: done) }
  }

  /// Performs `work` on a helper thread while the script waits, and returns the results that `answer`
  /// makes of its result. The script's other code continues meanwhile, and a virtual clock stands still.
  ///
  /// Work that takes long looks at its `Cancellation`, which is requested when the waiting code is
  /// stopped; its result is then dropped. Its error is raised at the script's line. `failed` is called in
  /// both cases, on the thread of the host. `memory` is where the result counts until the script has it.
  func offload<Result: Sendable>(
    _ call: LuaCall, in memory: CollectedBytes? = nil,
    _ work: @escaping @Sendable (Cancellation) throws(SystemError) -> Result,
    failed: (() -> Void)? = nil,
    answer: @escaping (LuaCall, Result) throws -> LuaAnswer
  ) throws -> LuaAnswer {
    try call.wait(OffloadWait(self, memory, work, failed: failed, answer: answer))
  }
}

/// The waits of a host's code that can't be parked.
struct WaitsInPlace {
  /// How many waits of the main chunk run the loop.
  var ofMain = 0
  /// The error for the innermost of those waits, if code above it has taken a cancellation.
  var cancellation: FlowError?
  /// Whether the running `__close`s belong to a coroutine after its grace: they may not wait.
  var cutsCloses = false
}

/// The code below on the stack, on top of which the loop runs.
struct CodeInPlace {
  private let host: ScriptHost
  // Unmanaged, all of it: the caller that runs the code retains it until the code continues.
  private let current: ScriptHost.Current
  private let fiber: Unmanaged<Fiber>?
  /// The execution that it checks something for. The loop has none while it runs in place.
  let checking: CheckingExecution?

  init(_ host: ScriptHost) {
    self.host = host
    checking = host.loop.checking
    current = host.current
    fiber = host.fiber.flatMap { fiber in
      fiber._withUnsafeGuaranteedRef { $0.isInnermost } ? fiber : nil
    }
  }

  /// Whether the wait has to do more than run the loop.
  var hasToLook: Bool {
    host.vm.hasRequest || host.ending.isTerminating || host.vm.isAskedToStop || stopError != nil
  }

  /// The error that stops the code; nil if only the watchdog stops it.
  var stopError: FlowError? {
    if let error = fiber?._withUnsafeGuaranteedRef({ $0.stopError }) { return error }
    if let error = checking?.stopError { return error }
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

/// Waits for the result of work on a helper thread.
private final class OffloadWait<Success: Sendable>: LuaWait {
  private let host: ScriptHost
  private let memory: CollectedBytes?
  private let cancellation = Cancellation()
  private let answer: (LuaCall, Success) throws -> LuaAnswer
  private let failed: (() -> Void)?
  private var result: Result<Success, SystemError>?

  override var subject: String { "helper thread" }

  init(
    _ host: ScriptHost, _ memory: CollectedBytes?,
    _ work: @escaping @Sendable (Cancellation) throws(SystemError) -> Success,
    failed: (() -> Void)?,
    answer: @escaping (LuaCall, Success) throws -> LuaAnswer
  ) {
    self.host = host
    self.memory = memory
    self.failed = failed
    self.answer = answer
    super.init()
    host.loop.offload { [cancellation] in
      // It may have waited for a thread.
      if cancellation.isRequested { return .failure(SystemError(code: ECANCELED)) }
      do throws(SystemError) { return .success(try work(cancellation)) } catch {
        return .failure(error)
      }
    } then: { [self] (result: Result<Success, SystemError>) in
      self.result = result
      ready()
    }
  }

  // A host that is closed drops its waits.
  deinit { cancellation.request() }

  /// The thread stops when it next looks; its result is dropped.
  override func abandon() {
    cancellation.request()
    failed?()
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    defer { memory?.release() }
    switch result {
    case .success(let value): return try answer(call, value)
    case .failure(let error):
      failed?()
      if error.isLackOfMemory { throw LuaError(.memory, LuaVM.memoryError) }
      throw host.raise(error, at: call.position)
    case nil: throw host.raise(.cancelled())
    }
  }
}

/// Makes pending tasks fail as stalled, the youngest first: one task at a time, because the end of
/// one may let all others continue.
///
/// It sorts the tasks once, not at each call, so that the time to end many stalled tasks is
/// proportional to their number.
struct StallPass {
  /// The maximum number of attempts per task.
  let times: Int
  /// The number of attempts for each task.
  private var asked: [UInt64: Int] = [:]
  /// Tasks that haven't been tried yet, the youngest last.
  private var open: [AnyFlowTask] = []
  /// The youngest task of the loop when `open` was filled.
  private var newest: UInt64 = 0

  init(times: Int) { self.times = times }

  /// Makes the youngest pending run or task fail as stalled.
  ///
  /// - Parameters:
  ///   - loop: The loop of the tasks, the same each time. Nothing in it can make progress now.
  ///   - owned: The tasks that may fail; by default all of the loop.
  /// - Returns: Whether there was such a task.
  mutating func failNext(on loop: FlowEventLoop, among owned: OwnedTasks? = nil) -> Bool {
    func pending(_ id: UInt64) -> AnyFlowTask? {
      if let owned { return owned.task(id) }
      return loop.pendingTask(id)
    }
    // Tasks started since the last call come first.
    if !open.isEmpty, newest < loop.newestTask {
      for id in newest + 1...loop.newestTask { if let task = pending(id) { open.append(task) } }
    }
    newest = loop.newestTask
    while true {
      while let task = open.last {
        let count = asked[task.id, default: 0]
        guard count < times, pending(task.id) != nil else {
          open.removeLast()
          continue
        }
        asked[task.id] = count + 1
        task.stopStalled()
        return true
      }
      // The code of an old task may have begun late, such as a continuation's.
      open = (owned?.all ?? loop.pendingTasks).filter { asked[$0.id, default: 0] < times }
      if open.isEmpty { return false }
    }
  }
}
