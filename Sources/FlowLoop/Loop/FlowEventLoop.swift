public import FlowSystem

/// The owner of things that live on an event loop, such as tasks and runs, and end with it.
package protocol LoopClient: AnyObject {
  /// Called once, when the loop is made. The loop retains its client, not the reverse.
  func attach(to loop: FlowEventLoop)
  /// Whether code that the client executes is calling the loop.
  var isExecuting: Bool { get }
  /// Cancels everything that is pending on the loop; it ends later.
  func cancelAll(reason: ByteString, on loop: FlowEventLoop)
  /// Called when the loop is shut down: releases everything that is pending.
  func loopIsShutDown()
  /// Called when the loop is about to be released.
  func loopIsReleased()
}

/// The child processes of a loop.
protocol LoopPrograms: AnyObject {
  /// Ends all of them at once, without reporting it.
  func killAll()
  /// Continues those that wait for code of the loop, because nothing else can happen any more. Returns
  /// whether there was any.
  func continueAll() -> Bool
  /// Whether some may wait for code of the loop.
  var areHeldBack: Bool { get }
  /// Soon continues those of them for whose end code waits.
  func continueAwaited()
}

/// The part of an adapter that lives on one event loop, such as the connections of HTTP, and ends with
/// it.
package protocol LoopExtension: AnyObject {
  /// Called when the loop is shut down or released: releases everything, and reports nothing.
  func loopIsShutDown()
}

/// A queue of ready jobs, timers, descriptors, child processes, and a mailbox for other threads.
///
/// An instance and everything on it belong to the thread that made it; only the `mailbox` may be
/// used from other threads. A call on the wrong thread ends the process with a sentence.
///
/// ```swift
/// let loop = FlowEventLoop()
/// let run = makeFlow("cat.png").start(on: loop)
/// try run.waitUntilEnd()
/// loop.shutdown()
/// ```
public final class FlowEventLoop: ThreadConfined {
  /// The result of a turn of the loop.
  ///
  /// ```swift
  /// while loop.turn(mayBlock: false) == .worked {}  // in the turns of another loop
  /// ```
  public enum Turn {
    /// A job ran, or the loop slept and was woken.
    case worked
    /// Nothing is ready, but a timer or work off the loop will come; only when the turn may not
    /// block.
    case waiting
    /// Nothing is ready and nothing can come any more.
    case idle
  }

  /// The source of the time.
  @usableFromInline package let timeSource: any TimeSource
  /// The way for other threads to pass work to the loop.
  public let mailbox = LoopMailbox()
  /// The client, which ends with the loop.
  // A constant: the engine reads it for each run, and a variable of another module would be checked
  // for exclusive access.
  package let client: (any LoopClient)?
  /// Counts what is collected for the code of the loop, such as outputs of programs; nil, the default, to
  /// count nothing.
  package var memoryMeter: (any MemoryMeter)?
  /// Called when the loop has nothing to do and is about to wait: returns the number of nanoseconds
  /// after which it wants to be called again if nothing happens before; nil for not at all.
  package var onRest: (() -> Int64?)?
  /// How many things outside of the loop its client waits for; the loop isn't idle until it is 0.
  package var outsideWork = 0

  @usableFromInline let usesSystemClock: Bool
  @usableFromInline package let identity = Identity.current

  // Unchecked exclusivity of these properties: only the loop's thread touches them, and no access
  // lasts into a call of a job.

  @exclusivity(unchecked) private var ready = JobQueue()
  @exclusivity(unchecked) private var hasShutDown = false
  /// Whether `shutdown` was called: nothing runs any more.
  // A function of this module, which knows that the variable needs no exclusivity check.
  package var isShutDown: Bool { hasShutDown }
  private let timers = TimerQueue()
  @exclusivity(unchecked) private var turns: UInt8 = 0

  /// Main-actor jobs, for a loop on the main thread; opened when the loop first has nothing else to
  /// do.
  @exclusivity(unchecked) private var mainQueue: MainQueue?
  @exclusivity(unchecked) private var hasSoughtMainQueue = false
  // Descriptors: see Poller.swift.
  let poller = Poller()

  /// Timers for events outside of the loop, which a virtual clock doesn't affect, and those that keep no
  /// loop alive.
  private let outsideTimers = TimerQueue()
  /// The child processes of the loop, once there was one.
  var programs: (any LoopPrograms)?
  package var hasProcesses: Bool { programs != nil }
  /// Set to let programs have the terminal that ask on it, as ssh does; called with the name of one if the status was
  /// shown, which may have hidden the question.
  package var onTerminalRequest: ((ByteString) -> Void)?

  /// Records that code has begun to wait for something, perhaps for a program that waits for readers of
  /// its lines.
  package func continueAwaitedPrograms() { programs?.continueAwaited() }

  /// See `standardInput`.
  var openInput: AnyObject?
  /// The parts of adapters that this loop has needed, by their classes, or by themselves where a loop has several.
  package var extensions: [ObjectIdentifier: any LoopExtension] = [:]

  /// When the loop began to wait for async code without an event; see `BlockingWait`.
  private var blockedSince: Int64 = 0

  // Work on other threads: see LoopExecutor.swift.
  var offloaded: [UInt64: AnyObject] = [:]
  var lastOffload: UInt64 = 0

  /// Makes a loop that is confined to the thread that makes it.
  ///
  /// - Parameters:
  ///   - timeSource: The source of the time.
  ///   - client: The client of the loop; its `attach` is called.
  package init(timedBy timeSource: any TimeSource, client: (any LoopClient)? = nil) {
    self.timeSource = timeSource
    self.client = client
    usesSystemClock = timeSource is SystemClock
    client?.attach(to: self)
    ThreadLoop.add(self)
  }

  deinit {
    ThreadLoop.remove(self)
    endExtensions()
    client?.loopIsReleased()
    timers.removeAll()
    mailbox.closeDown()
    outsideTimers.removeAll()
    programs?.killAll()
    poller.removeAll()
  }

  /// Releases everything that is pending: runs, jobs, timers and posted work; child processes are
  /// killed. Nothing runs on the loop afterwards.
  ///
  /// A pending run and its loop hold each other, because a run continues even when nothing observes
  /// it. A loop that is dropped while runs are pending therefore leaks, unless it is shut down.
  /// Such runs stay pending: their bodies aren't stopped, and their observers aren't notified. The
  /// Swift tasks of `async` bodies are cancelled and run as far as they can without waiting; a task
  /// that still waits after that never continues. Call it on the loop's thread, not from within a
  /// body or callback; calling it twice is harmless.
  ///
  /// ```swift
  /// let loop = FlowEventLoop()
  /// defer { loop.shutdown() }
  /// makeUploadFlow().start(on: loop)
  /// loop.runUntilIdle()
  /// ```
  public func shutdown(file: StaticString = #fileID, line: UInt = #line) {
    checkThread()
    guard client?.isExecuting != true else {
      misuse(
        "an event loop was shut down from within a body or callback that it runs", file: file,
        line: line)
    }
    hasShutDown = true
    ThreadLoop.remove(self)
    programs?.killAll()
    endExtensions()
    client?.loopIsShutDown()
    while ready.popFirst() != nil {}
    timers.removeAll()
    mailbox.closeDown()
    // Nothing takes their results any more, and their completions keep what waits for them.
    offloaded = [:]
    outsideWork = 0
  }

  private func endExtensions() {
    let ended = extensions.values
    extensions = [:]
    for each in ended { each.loopIsShutDown() }
  }

  /// The time in nanoseconds of the loop's clock.
  // Inlined into the engine, like the checks of the thread: each op reads the clock.
  @inlinable
  @inline(__always)
  package func now() -> Int64 {
    usesSystemClock ? SystemClock.read(CLOCK_MONOTONIC) : timeSource.now()
  }

  /// The time `duration` from now, in nanoseconds: now when it is negative, the latest possible time when it is too
  /// long.
  package func deadline(after duration: Duration) -> Int64 {
    now().later(by: duration.clampedNanoseconds)
  }

  /// Enqueues `job` after all jobs that are ready; drops it when the loop is shut down.
  package func enqueue(_ job: any LoopJob) {
    checkThread()
    if !isShutDown { ready.append(job) }
  }

  /// Calls a closure in a turn of its own. On the loop's thread only.
  public func enqueue(_ body: @escaping () -> Void) {
    enqueue(ClosureJob(body))
  }

  /// Runs `job` when the clock has reached `time` (nanoseconds); equal times keep their order.
  ///
  /// On a loop that is shut down the timer isn't pending, and never will be.
  @discardableResult
  package func schedule(at time: Int64, _ job: any LoopJob) -> LoopTimer {
    checkThread()
    let timer = timers.add(deadline: time, job: job)
    if isShutDown { timer.cancel() }
    return timer
  }

  /// Calls a closure at a time, in nanoseconds of the loop's clock. On the loop's thread only.
  @discardableResult
  package func schedule(at time: Int64, _ body: @escaping () -> Void) -> LoopTimer {
    schedule(at: time, ClosureJob(body))
  }

  /// Calls a closure when `delay` has passed on the loop's clock; in a later turn when it is 0 or negative. On the
  /// loop's thread only.
  @discardableResult
  public func schedule(after delay: Duration, _ body: @escaping () -> Void) -> LoopTimer {
    schedule(at: deadline(after: delay), body)
  }

  /// Runs `body` when `delay` has passed in real time, even while a virtual clock doesn't advance
  /// because a descriptor is watched; when nothing is watched any more, it may never be called.
  package func scheduleOutside(after delay: Duration, _ body: @escaping () -> Void) -> LoopTimer {
    guard timeSource.isVirtual else { return schedule(after: delay, body) }
    return scheduleAside(after: delay, body)
  }

  /// Runs `body` when `delay` has passed in real time, between two jobs, unless nothing else can come any
  /// more before: it keeps no loop alive.
  @discardableResult
  package func scheduleAside(after delay: Duration, _ body: @escaping () -> Void) -> LoopTimer {
    checkThread()
    let time = SystemClock.read(CLOCK_MONOTONIC).later(by: delay.clampedNanoseconds)
    let timer = outsideTimers.add(deadline: time, job: ClosureJob(body))
    if isShutDown { timer.cancel() }
    return timer
  }

  /// As `schedule(at:_:)`, for a pending job that keeps track itself whether it is pending. On a
  /// loop that is shut down its time is over at once, and nothing runs.
  package func schedule(at time: Int64, timed job: any TimedJob) {
    checkThread()
    if isShutDown {
      _ = job.takeJob()
    } else {
      timers.add(deadline: time, timed: job)
    }
  }

  /// Records that a pending `TimedJob` stopped being pending before its time.
  package func noteCancelledTimer() {
    checkThread()
    timers.noteCancelled()
  }

  /// Runs one ready job; when there is none and the turn may block, sleeps until there is something
  /// to do.
  public func turn(mayBlock: Bool) -> Turn {
    checkThread()
    return ThreadLoop.execute(for: self) { takeTurn(mayBlock: mayBlock) }
  }

  /// Has the next turn look at all that may have become ready, as busy code that lets others run needs it.
  package func looksAround() { turns |= 15 }

  private func takeTurn(mayBlock: Bool) -> Turn {
    if mailbox.mayHaveWork { takeMail() }
    turns &+= 1
    if let mainQueue, ready.isEmpty || turns & 15 == 0, mainQueue.drain() { return .worked }
    // When nothing is ready, the sleep checks the descriptors.
    if poller.isActive, turns & 15 == 0 || ready.isEmpty && !mayBlock, poll(), ready.isEmpty {
      // The caller may be turning the loop only for that.
      return .worked
    }
    // Due timers get their turn even while jobs keep making jobs.
    if !timers.isEmpty, ready.isEmpty || turns & 15 == 0 { takeDueTimers() }
    // A wait takes them too, but a busy loop has none.
    if turns & 15 == 0 { takeOutsideTimers() }
    if let job = ready.popFirst() {
      job.run()
      // A loop that is busy for long doesn't keep the main actor waiting.
      if turns == 0, !hasSoughtMainQueue { _ = drainsNewMainQueue() }
      return .worked
    }
    if !hasSoughtMainQueue, drainsNewMainQueue() { return .worked }
    if mayBlock { return sleep() }
    return canContinue ? .waiting : rest()
  }

  /// The result of a turn in which nothing can come any more, unless a program is let continue.
  private func rest() -> Turn { programs?.continueAll() == true ? .worked : .idle }

  /// Turns until `done` returns true; false when nothing can come any more.
  public func turn(until done: () -> Bool) -> Bool {
    while !done() {
      if turn(mayBlock: true) == .idle { return done() }
    }
    return true
  }

  /// Turns until a time has passed on the loop's clock, also when nothing else comes. A test goes forward by steps on a
  /// virtual clock: all that is due by then has run, except for code that is busy without end.
  ///
  /// ```swift
  /// let loop = FlowEventLoop(clock: VirtualClock())
  /// let run = SleepOp(.seconds(60)).start(on: loop)
  /// loop.turn(for: .seconds(59))
  /// print(run.state)  // pending
  /// loop.turn(for: .seconds(1))
  /// print(run.state)  // succeeded
  /// ```
  public func turn(for duration: Duration) {
    var isOver = false
    let timer = schedule(after: duration) { isOver = true }
    _ = turn(until: { isOver })
    timer.cancel()
    guard timeSource.isVirtual else { return }
    // Each round is for all that the one before has made ready.
    var rounds = 0
    while rounds < 100, turn(mayBlock: false) == .worked {
      rounds += 1
      var isPast = false
      enqueue { isPast = true }
      while !isPast, turn(mayBlock: false) == .worked {}
    }
  }

  /// Turns until nothing can come any more.
  public func runUntilIdle() {
    while turn(mayBlock: true) != .idle {}
  }

  /// Opens the main queue; returns whether there was anything in it.
  private func drainsNewMainQueue() -> Bool {
    hasSoughtMainQueue = true
    mainQueue = MainQueue()
    return mainQueue?.drain() ?? false
  }

  private var canContinue: Bool {
    !ready.isEmpty || !timers.isEmpty || mailbox.externalWork > 0 || mailbox.mayHaveWork
      || outsideWork > 0 || poller.isActive
  }

  /// Whether the loop would sleep now, and for longer than this many nanoseconds: no job is ready, nothing comes from
  /// descriptors or other threads, and no timer is due by then.
  package func isQuiet(for duration: Int64) -> Bool {
    guard ready.isEmpty, !mailbox.mayHaveWork, mailbox.externalWork == 0, outsideWork == 0,
      !poller.isActive
    else { return false }
    guard let deadline = timers.nextDeadline else { return true }
    return deadline > now().later(by: duration)
  }

  /// Runs the limits that are due at `time`, for code that executes without waiting; other due
  /// timers become ready.
  package func runLimits(dueAt time: Int64) {
    var left = 64
    while left > 0, let job = timers.popDue(at: time) {
      left -= 1
      if (job as? LoopTimer)?.isLimit == true { job.run() } else { ready.append(job) }
    }
  }

  private func takeMail() {
    for work in mailbox.takeAll() where !isShutDown {
      ready.append(ClosureJob { [unowned self] in work(self) })
    }
  }

  /// A few at a time: if a thousand are due at once, they would only wait in another queue.
  private func takeDueTimers() {
    let time = now()
    var left = ready.isEmpty ? 64 : 8
    while left > 0, let timer = timers.popDue(at: time) {
      ready.append(timer)
      left -= 1
    }
  }

  private func sleep() -> Turn {
    // Order matters: work posts before it ends, so after reading a count of 0 no mail is missed.
    let isExternal = mailbox.externalWork > 0 || outsideWork > 0 || poller.isActive
    if mailbox.mayHaveWork { return .worked }
    guard let deadline = timers.nextDeadline else {
      guard isExternal else { return rest() }
      wait(timeout: -1)
      return .worked
    }
    // Only the time limits of what waits are left: nothing else can happen before they stop it.
    if !isExternal, programs?.areHeldBack == true, timers.areAllLimits, rest() == .worked {
      return .worked
    }
    if !timeSource.isVirtual {
      let time = now()
      wait(timeout: deadline > time ? deadline - time : 0)
    } else if isExternal {
      wait(timeout: -1)
    } else {
      timeSource.advance(to: deadline)
    }
    return .worked
  }

  /// Sleeps until something comes from outside or `timeout` nanoseconds have passed (negative: no
  /// limit).
  private func wait(timeout: Int64) {
    var timeout = timeout
    if let rest = onRest?() {
      timeout = timeout < 0 ? rest : min(rest, timeout)
    }
    let runsMainActor = mainQueue?.isUsable ?? false
    let mainQueue = mainQueue?.descriptor ?? -1
    if let deadline = outsideTimers.nextDeadline {
      let time = SystemClock.read(CLOCK_MONOTONIC)
      let left = deadline > time ? deadline - time : 0
      timeout = timeout < 0 ? left : min(left, timeout)
    }
    let isPolling = poller.isActive
    // A copy: what arrives may run code that waits, too.
    var blockedSince = blockedSince
    defer { self.blockedSince = blockedSince }
    BlockingWait.perform(
      awaitsSwift: outsideWork > 0, runsMainActor: runsMainActor, timeout: timeout,
      since: &blockedSince
    ) { timeout in
      if isPolling {
        poller.wait(timeout: timeout, or: mainQueue)
      } else {
        mailbox.wait(timeout: timeout, or: mainQueue)
      }
    }
    if isPolling { poll() } else { takeOutsideTimers() }
  }

  /// Runs the jobs of ready descriptors; returns whether there were any, or the loop was woken.
  @discardableResult
  private func poll() -> Bool {
    let (hasRun, isMailReady) = poller.runReadyJobs()
    if isMailReady { mailbox.drain() }
    takeOutsideTimers()
    return hasRun || isMailReady
  }

  private func takeOutsideTimers() {
    guard !outsideTimers.isEmpty else { return }
    let time = SystemClock.read(CLOCK_MONOTONIC)
    while let job = outsideTimers.popDue(at: time) { ready.append(job) }
  }

  /// Ends the process when called on another thread than the loop's own.
  @inlinable
  @inline(__always)
  package func checkThread() { identity.check() }
}

extension FlowEventLoop {
  /// The thread that a loop, and everything on it, is confined to.
  @usableFromInline
  package struct Identity: Sendable {
    @usableFromInline let thread: pthread_t

    package static var current: Identity { Identity(thread: pthread_self()) }

    @inlinable
    @inline(__always)
    package var isCurrentThread: Bool { pthread_self() == thread }

    /// Ends the process when called on another thread.
    @inlinable
    @inline(__always)
    package func check() {
      if !isCurrentThread { trap() }
    }

    @inline(never)
    @usableFromInline
    func trap() -> Never {
      misuse(
        "an event loop, or a run, op or bucket of it, was used on another thread than its own; "
          + "post to its mailbox")
    }
  }
}
