public import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// Cancels what a host runs, from any thread.
///
/// A program that lists its scripts makes one for each, before the host exists, and gives it to `ScriptHost.run`
/// or a `ScriptThread`. A cancellation that comes before the host does holds for it. Any other host has one of
/// its own: `ScriptHost.canceller`.
///
/// ```swift
/// let canceller = ScriptCanceller()
/// let running = Task { try await ScriptHost.run(script: "while true do end", canceller: canceller) }
/// canceller.cancel(reason: "the client has left")
/// ```
///
/// It belongs to one host at a time, from the call that it is given to until the host is closed.
// The monitor guards all properties; the host is only used on its own thread.
public final class ScriptCanceller: @unchecked Sendable {
  private let monitor = Monitor()
  /// The error of a cancellation that the host hasn't taken.
  private var request: FlowError?
  /// Whether the host has to look which of its requests were cancelled.
  private var hasNotice = false
  /// Whether busy code has to let others run.
  private var wantsTurn = false
  /// Set while the host is open. Called with the lock held: `detach` takes it away before the state is
  /// released, and the call only sends a signal.
  private var attention: LuaAttention?
  private var mailbox: LoopMailbox?
  /// The alarm that repeats the signal; only its own action replaces and releases it.
  private var repetition: LuaAlarm?
  /// Whether it belongs to a host, or to one that is about to be made; and how many it has belonged to.
  private var isTaken = false
  private var hosts = 0
  // Unowned: the host detaches it before its end.
  private unowned(unsafe) var host: ScriptHost?

  /// How long until a signal that the host hasn't noticed is repeated, in nanoseconds; it doubles each time.
  private static let firstInterval: Int64 = 5_000_000
  private static let lastInterval: Int64 = 640_000_000

  /// Makes a canceller for a host that doesn't exist yet.
  public init() {}

  /// Cancels everything that the host runs: runs, tasks, and the code that executes or waits now.
  ///
  /// Code of ops, callbacks and tasks is stopped as by a timeout, also while it is busy: no `pcall` notices.
  /// In the main chunk an error is raised. The error has the kind `cancelled`, and names the reason. Cleanups
  /// and final steps run. A host that runs nothing takes it when it next runs something; it can be used
  /// again afterwards. Without a host it is kept for the next one, which then runs nothing. Of several calls
  /// before the host takes the cancellation, the first one gives the reason.
  ///
  /// - Parameter reason: The reason, for errors and logs.
  public func cancel(reason: (any FlowText)? = nil) { cancel(reason: reason, host: nil) }

  /// Cancels the work of a certain host, by its number, and nothing if it is closed; or the work of any host.
  func cancel(reason: (any FlowText)?, host number: Int?) {
    cancel(.cancelled(reason: reason), host: number)
  }

  /// Cancels because of another error, such as a time limit's, which stops everything.
  package func cancel(_ error: FlowError, host number: Int? = nil) {
    let mailbox = monitor.locked { () -> LoopMailbox? in
      if let number, !isTaken || number != hosts { return nil }
      if request == nil { request = error }
      return self.mailbox
    }
    wake(mailbox)
  }

  /// Lets the host look which of its requests were cancelled, soon.
  ///
  /// - Parameter turns: Whether code that is busy lets other code run.
  func notice(turns: Bool = false) {
    wake(
      monitor.locked {
        hasNotice = true
        if turns { wantsTurn = true }
        return mailbox
      })
  }

  /// Whether the host has to look. Called with the lock held.
  private var isPending: Bool { request != nil || hasNotice || wantsTurn }

  private func wake(_ mailbox: LoopMailbox?) {
    // For a host that waits.
    if let mailbox {
      mailbox.post { [self] _ in host(of: mailbox)?.takeCancellation(isInCode: false) }
    }
    call()
  }

  /// Takes the notice; returns whether busy code has to let others run. It is asked again until it has, because there is code
  /// that can't.
  func takeNotice(isInCode: Bool) -> Bool {
    monitor.locked {
      hasNotice = false
      if !isInCode { wantsTurn = false }
      return wantsTurn
    }
  }

  /// The host, if its mailbox is this one; on its thread. A later host may run on another one.
  private func host(of mailbox: LoopMailbox) -> ScriptHost? {
    monitor.locked { self.mailbox === mailbox ? host : nil }
  }

  /// Signals the host, if it is there, until it has taken the cancellation.
  private func call() {
    monitor.locked {
      guard let attention, isPending else { return }
      attention.call()
      if repetition == nil { repeatCall(after: Self.firstInterval) }
    }
  }

  /// Repeats the signal until the host has taken the cancellation: code that is just about to begin may miss it. Called
  /// with the lock held.
  private func repeatCall(after interval: Int64) {
    let time = LuaVM.monotonicTime.later(by: interval)
    // Without a thread for it there is one signal.
    repetition = LuaAlarm(at: time) { [weak self] in self?.callAgain(after: interval) }
  }

  private func callAgain(after interval: Int64) {
    monitor.locked {
      guard let attention, isPending else {
        repetition = nil
        return
      }
      attention.call()
      // Code that can't let others run, such as a function that C calls, soon returns to code that can.
      let longest = wantsTurn ? Self.firstInterval : Self.lastInterval
      repeatCall(after: min(interval * 2, longest))
    }
  }

  /// Returns the error of the cancellation, which the caller handles from now on; nil if there is none.
  func take() -> FlowError? {
    monitor.locked {
      guard let taken = request else { return nil }
      request = nil
      monitor.broadcast()
      return taken
    }
  }

  // MARK: Its host

  /// Takes the canceller for a host that is about to be made: the caller gives it back. A cancellation that has
  /// come already remains.
  ///
  /// - Returns: The number of the host.
  @discardableResult
  func begin(file: StaticString = #fileID, line: UInt = #line) -> Int {
    let number = monitor.locked { () -> Int? in
      if isTaken { return nil }
      isTaken = true
      hosts += 1
      return hosts
    }
    guard let number else {
      misuse(
        "a script canceller was given to a host while it belongs to another", file: file, line: line
      )
    }
    return number
  }

  /// Gives the canceller back, after its host was closed or couldn't be made. A cancellation that has come too late
  /// doesn't hold for the next host.
  func end() {
    monitor.locked {
      isTaken = false
      request = nil
      hasNotice = false
      wantsTurn = false
    }
  }

  func attach(to host: ScriptHost) {
    host.vm.acceptAttention()
    host.vm.onHostAttention = { [unowned host] in host.takeCancellation(isInCode: true) }
    monitor.locked {
      self.host = host
      attention = host.vm.attention
      mailbox = host.loop.mailbox
    }
    call()
  }

  /// Called on the host's thread before its state is closed.
  func detach() {
    monitor.locked {
      host = nil
      attention = nil
      mailbox = nil
      request = nil
      monitor.broadcast()
    }
  }
}

/// The means to stop everything that a host runs: its canceller, and the limit of its time.
private final class ScriptLimits: HostService {
  /// Cancels what the host runs, from any thread; see `ScriptHost.canceller`.
  var canceller: ScriptCanceller?
  var time: Duration?
  /// The alarm at the end of the time.
  var alarm: LuaAlarm?

  func hostWillClose(_ host: ScriptHost) {
    alarm = nil
    canceller?.detach()
  }
}

extension ScriptHost {
  /// The error of a cancellation, which the caller handles from now on; nil if there is none.
  func takeCancellation() -> FlowError? { existing(ScriptLimits.self)?.canceller?.take() }

  /// Cancels what the host runs, from any thread: hand it over before the host's thread is busy.
  ///
  /// ```swift
  /// let canceller = host.canceller
  /// Task { try await shutdownRequest(); canceller.cancel(reason: "shutting down") }
  /// ```
  public var canceller: ScriptCanceller {
    if let known = limits.canceller { return known }
    let made = ScriptCanceller()
    made.begin()
    attach(made)
    return made
  }

  /// Cancels everything that the host runs; see `ScriptCanceller.cancel`. On the host's thread: soon, when its
  /// code or its loop continues.
  package func cancel(reason: (any FlowText)? = nil) { canceller.cancel(reason: reason) }

  /// Lets a canceller that was taken for this host, and may have been used, cancel what the host runs.
  func attach(_ canceller: ScriptCanceller) {
    limits.canceller = canceller
    if isWorker { misuse("the host of a worker has no canceller") }
    // A host that is closed has nothing to cancel, and would never detach it.
    if services == nil { return }
    canceller.attach(to: self)
  }

  private var limits: ScriptLimits { service { ScriptLimits() } }

  /// How long the host may run scripts from the time at which this is set; nil, the default, for any time. Set on
  /// the thread of the host; setting it again replaces the limit, and nil removes it.
  ///
  /// At its end everything that the host runs is stopped as by `ScriptCanceller.cancel`, busy code as well: runs,
  /// tasks and the code that executes or waits then, with an error of kind `time`. Cleanups and final steps run. The
  /// time is the system's, also on a loop with a virtual clock.
  ///
  /// ```swift
  /// host.timeLimit = .seconds(60)
  /// ```
  ///
  /// The error is thrown once: a host that runs nothing at the end of the limit throws it when it next runs
  /// something, and can be used again afterwards. The main chunk of `vm.call` can catch the error; code of ops and
  /// tasks and of `call(_:_:deadline:)` can't. If the system gives no thread for the limit, everything ends at
  /// once with an error that says so.
  public var timeLimit: Duration? {
    get { existing(ScriptLimits.self)?.time }
    set {
      limits.time = newValue
      limitTime()
    }
  }

  /// Sets the alarm for the time limit, or removes it.
  private func limitTime() {
    let limits = limits
    // A limit that has just ended has made its request.
    limits.alarm?.cancel()
    limits.alarm = nil
    guard isOpen, let timeLimit = limits.time else { return }
    let error = FlowError(.time, "the time limit of \(FlowValue.text(of: timeLimit)) was exceeded")
    let canceller = canceller
    let end = LuaVM.monotonicTime.later(by: max(timeLimit, .zero).clampedNanoseconds)
    limits.alarm = LuaAlarm(at: end) { canceller.cancel(error) }
    if limits.alarm == nil {
      canceller.cancel(
        FlowError(.error, "the time can't be limited: the system gives no thread for it"))
    }
  }

  /// Stops everything because of a cancellation, if there is one.
  ///
  /// - Parameter isInCode: Whether the state's code is executing, and has called this between two of its
  ///   instructions.
  func takeCancellation(isInCode: Bool) {
    let wantsTurn = existing(ScriptLimits.self)?.canceller?.takeNotice(isInCode: isInCode) == true
    let requests = existing(HostRequests.self)
    requests?.stopCancelled(isInCode: isInCode)
    if isInCode, requests?.giveTurn() != true, wantsTurn, !executesCleanup {
      vm.pause(at: TurnWait(isForCancellation: true))
    }
    guard let error = takeCancellation() else { return }
    if loop.pendingTaskCount > 0 { events.onCancellation?(true) }
    stopTasks(error)
    guard isInCode else { return }
    if !vm.runsScheduledCoroutine {
      waitsInPlace.cancellation = nil
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
    if waitsInPlace.ofMain > 0 { waitsInPlace.cancellation = error }
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
    waitsInPlace.ofMain -= 1
    guard waitsInPlace.ofMain == 0 else { return }
    waitsInPlace.cancellation = nil
    events.onMainWait?(false)
  }

  /// The main chunk begins to wait.
  func beginMainWait() {
    waitsInPlace.ofMain += 1
    if waitsInPlace.ofMain == 1 { events.onMainWait?(true) }
  }
}
