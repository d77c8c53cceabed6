import Glibc

/// Runs flows: a queue of ready jobs, timers, and a mailbox for other threads.
///
/// An instance belongs to the thread that made it, with all its runs, buckets and values; only the
/// `mailbox` may be used from elsewhere. A wrong thread ends the process with a sentence.
public final class EventLoop {
  /// What a turn of the loop did.
  public enum Turn {
    /// A job ran, or the loop slept and was woken.
    case worked
    /// Nothing is ready, but a timer or work off the loop is to come; only when it may not block.
    case waiting
    /// Nothing is ready and nothing can ever come.
    case idle
  }

  /// What tells the time.
  public let clock: any LoopClock
  /// The names of all keys that are used on this loop.
  public let keys: KeyTable
  /// How other threads hand work to the loop.
  public let mailbox = Mailbox()
  /// Makes the list that a group collects.
  public var makeList: (ContiguousArray<Value>) -> Value = { .opaque(ListValue($0)) }
  /// Makes the record of a failed item (0-based index) for a group's `failures`.
  public var makeFailure: (_ index: Int, _ input: Value, _ error: FlowError) -> Value = {
    .opaque(ItemFailure(index: $0, input: $1, error: $2))
  }
  /// Makes the runner for a group's items when the op doesn't make one. Without it, or when it
  /// answers nil, the loop executes them itself.
  public var makeItemRunner: ((ItemWork) -> (any ItemRunner)?)?
  /// Sinks that every run started from now on writes to, besides its own.
  public var eventSinks: [any EventSink] = []
  /// Who is told of each run that starts from now on and that no op of another run has started.
  public var runMonitors: [any RunMonitor] = []
  /// Who shows how far groups and ops are; set before any run starts.
  @exclusivity(unchecked) public var progressMonitor: (any ProgressMonitor)?
  /// What is executed in place of other ops; set while no run is pending.
  @exclusivity(unchecked) public var replacements: OpReplacements?

  /// How long a body that was asked to stop may still run, in nanoseconds; its cleanups have
  /// `cleanupGrace`.
  public var gracePeriod: Int64 {
    get { grace }
    set { grace = newValue }
  }
  // Unchecked exclusivity: the loop's thread alone touches it. Not public, because the attribute is
  // lost on the way to another module.
  @exclusivity(unchecked) private var grace: Int64 = 1_000_000_000

  /// How many seconds all cleanups of an op or flow have once it was stopped, from the beginning of
  /// the first one: cleanups, final steps, what a flow calls after its end. `.infinity` for no limit;
  /// what isn't a number of at least 0 counts as 0. An op or flow with a `grace` has that instead.
  /// After success and failure they have all the time they need.
  public var cleanupGrace: Double {
    get { defaultGrace }
    set { defaultGrace = newValue >= 0 ? newValue : 0 }
  }
  @exclusivity(unchecked) private(set) var defaultGrace: Double = 30
  /// Where the jitter of retries is drawn from; give a `SeededGenerator` to foretell it.
  public var randomNumberGenerator: any RandomNumberGenerator = SystemRandomNumberGenerator()

  let usesSystemClock: Bool
  let identity = Identity.current

  // Unchecked exclusivity, of these: the loop's thread alone touches them, and no access lasts into
  // a call of a job.

  @exclusivity(unchecked) private var ready = JobQueue()
  @exclusivity(unchecked) private(set) var isShutDown = false
  /// How many calls of `drive` are going on.
  @exclusivity(unchecked) var driveDepth = 0
  private let timers = TimerQueue()
  @exclusivity(unchecked) private var turns: UInt8 = 0

  // Swift tasks: see LoopTasks.swift.
  var tasks: LoopTasks?
  /// How many of them wait for something that isn't the loop's own.
  var outsideTasks = 0
  /// Main-actor jobs, of a loop on the main thread; sought when the loop first has nothing else to do.
  @exclusivity(unchecked) private var mainQueue: MainQueue?
  @exclusivity(unchecked) private var hasSoughtMainQueue = false
  // Descriptors: see Poller.swift.
  let poller = Poller()

  /// Timers for what is outside, which knows no virtual clock.
  private let outsideTimers = TimerQueue()
  /// Made for the first program.
  private(set) lazy var processes = ProcessTable(self)
  var hasProcesses = false

  // Work on other threads: see HelperThreads.swift.
  var offloaded: [UInt64: AnyObject] = [:]
  var lastOffload: UInt64 = 0

  // Execution: see EventLoop+Execution.swift.

  // Unchecked exclusivity, of these: the loop's thread alone touches them, and no access
  // lasts into a call of a body or job. The checks would cost more than the accesses.

  @exclusivity(unchecked) var works: ContiguousArray<Work> = []
  /// The last clock read, while nothing that takes time has happened since; else 0.
  @exclusivity(unchecked) var stamp: Int64 = 0
  /// When what executes without waiting has to call `look`; never with a virtual clock, whose time
  /// stands still meanwhile.
  @exclusivity(unchecked) var nextLook: Int64
  /// Called now and then while ops execute without waiting. Nothing may be waited for in it.
  package var onLook: (() -> Void)?
  /// Counts begins and ends of executions: tells one from all others on this loop.
  @exclusivity(unchecked) var generation: UInt64 = 0
  /// The generation at which what executes without waiting lets other jobs run: see `drive`.
  @exclusivity(unchecked) var turnEnd: UInt64 = 0

  /// Whose declarations are being checked by what may be functions of a script. Unmanaged: it is on the
  /// stack.
  @exclusivity(unchecked) var checking: Unmanaged<Strand>?

  // Unretained, so that a strand can tell whether anybody but it holds its context; each is cleared
  // or replaced before its strand lets it go.
  @exclusivity(unchecked) var contexts: ContiguousArray<Unmanaged<OpContext>?> = []
  @exclusivity(unchecked) var freeSlots: ContiguousArray<UInt32> = []
  @exclusivity(unchecked) var freeContexts: ContiguousArray<OpContext> = []
  @exclusivity(unchecked) var lastTaskID: UInt64 = 0
  /// Runs that aren't concluded.
  var pending: [UInt64: Run] = [:]
  /// Continuations whose code, or what that has handed over, goes on, by their ids.
  var continuations: [UInt64: AnyFlowTask] = [:]
  /// Failures that nobody has observed.
  let failures: FailureReports

  // Tasks: see ContinuationThread.swift and AnyFlowTask.swift.

  /// How many continuations run within one another.
  @exclusivity(unchecked) var continuationDepth: UInt8 = 0
  /// Whether another loop runs in place of this one; see `standStill`.
  @exclusivity(unchecked) var isStandingStill = false
  /// Continuations that run when the outermost one has returned.
  @exclusivity(unchecked) var immediates = JobQueue()
  /// What is to be let go of, whose end may add more: see `releaseAll`.
  @exclusivity(unchecked) var released: ContiguousArray<AnyObject> = []
  @exclusivity(unchecked) var isReleasing = false
  /// Says where a task was made, from its `origin`.
  package var describeOrigin: ((UInt64) -> ByteString)?

  /// What nothing that this loop shows may contain: the secrets of its runs, and those that a program
  /// adds.
  public var secrets: SecretTexts { keys.secrets }

  /// A loop of its own, confined to the thread that makes it.
  ///
  /// - Parameters:
  ///   - clock: The source of the time.
  ///   - secrets: What nothing that the loop shows may contain; loops of several threads that work
  ///     together share theirs.
  public convenience init(
    clock: any LoopClock = SystemClock(), secrets: SecretTexts = SecretTexts()
  ) {
    self.init(clock: clock, keys: KeyTable(secrets: secrets), failures: FailureReports())
  }

  init(clock: any LoopClock, keys: KeyTable, failures: FailureReports) {
    self.clock = clock
    self.keys = keys
    self.failures = failures
    usesSystemClock = clock is SystemClock
    nextLook = clock.isVirtual ? .max : 0
  }

  deinit {
    timers.removeAll()
    tasks?.executor.detach()
    mailbox.closeDown()
    outsideTimers.removeAll()
    if hasProcesses { processes.killAll() }
    poller.removeAll()
  }

  /// Lets go of all that is pending: runs, jobs, timers and posted work; programs are killed. Nothing
  /// runs here any more.
  ///
  /// A pending run and its loop hold each other, because a run goes on when nobody looks; a loop
  /// that is dropped while runs are pending leaks unless it is shut down. Such runs stay pending:
  /// their bodies aren't asked to stop, nor are their observers told. The Swift tasks of `async`
  /// bodies are cancelled and do at once what they can do without waiting; one that even then waits
  /// for something never goes on. Call it on the loop's thread, not from within a body or callback;
  /// calling it twice does no harm.
  public func shutdown() {
    checkThread()
    guard driveDepth == 0 else {
      misuse("an event loop was shut down from within a body or callback that it runs")
    }
    isShutDown = true
    if hasProcesses { processes.killAll() }
    abandonRuns()
    works = []
    while ready.popFirst() != nil {}
    while immediates.popFirst() != nil {}
    timers.removeAll()
    mailbox.closeDown()
    makeItemRunner = nil
    tasks?.shutDown()
    outsideTasks = 0
  }

  /// The time in nanoseconds of the loop's clock.
  public func now() -> Int64 {
    usesSystemClock ? SystemClock.read(CLOCK_MONOTONIC) : clock.now()
  }

  /// The time of an event between two ops. The next op must not begin before it, so it may only
  /// share this reading of the clock.
  func stampedNow() -> Int64 {
    stamp = now()
    return stamp
  }

  /// The time `seconds` from now; as late as a clock can say when that is too far or not a number.
  public func deadline(after seconds: Double) -> Int64 {
    guard seconds > 0 else { return now() }
    return deadline(after: seconds, from: now())
  }

  /// The time `seconds` after `time`, which is in nanoseconds; `.max` when that is too far.
  func deadline(after seconds: Double, from time: Int64) -> Int64 {
    time.later(by: Self.nanoseconds(seconds))
  }

  /// Seconds in nanoseconds, as far as those go; 0 for what is negative.
  package static func nanoseconds(_ seconds: Double) -> Int64 {
    guard seconds > 0 else { return 0 }
    return Int64(exactly: (seconds * 1e9).rounded()) ?? .max
  }

  /// Puts `job` behind all that is ready; drops it when the loop is shut down.
  public func enqueue(_ job: any LoopJob) {
    checkThread()
    if !isShutDown { ready.append(job) }
  }

  /// Has a closure called in a turn of its own. On the loop's thread only.
  public func enqueue(_ body: @escaping () -> Void) {
    enqueue(ClosureJob(body))
  }

  /// Runs `job` once the clock has reached `time` (nanoseconds); equal times keep their order.
  ///
  /// On a loop that is shut down the timer isn't pending, and never will be.
  @discardableResult
  public func schedule(at time: Int64, _ job: any LoopJob) -> Timer {
    checkThread()
    let timer = timers.add(deadline: time, job: job)
    if isShutDown { timer.cancel() }
    return timer
  }

  /// Has a closure called at a time, in nanoseconds of the loop's clock. On the loop's thread only.
  @discardableResult
  public func schedule(at time: Int64, _ body: @escaping () -> Void) -> Timer {
    schedule(at: time, ClosureJob(body))
  }

  /// Runs `body` after so many seconds of real time, even while a virtual clock stands still because
  /// something is watched; once nothing is, the time may stay open.
  package func scheduleOutside(after seconds: Double, _ body: @escaping () -> Void) -> Timer {
    guard clock.isVirtual else { return schedule(at: deadline(after: seconds), body) }
    let time = deadline(after: seconds, from: SystemClock.read(CLOCK_MONOTONIC))
    return outsideTimers.add(deadline: time, job: ClosureJob(body))
  }

  /// As `schedule(at:_:)`, for a job that says itself whether it is pending: it must be, now. On a
  /// loop that is shut down its time is over at once, and nothing is run.
  public func schedule(at time: Int64, timed job: any TimedJob) {
    checkThread()
    if isShutDown {
      _ = job.takeJob()
    } else {
      timers.add(deadline: time, timed: job)
    }
  }

  /// Says that a `TimedJob` that was pending isn't any more, before its time.
  public func noteCancelledTimer() {
    checkThread()
    timers.noteCancelled()
  }

  /// Does one ready job; when there is none and it may block, sleeps until there is something to do.
  public func turn(mayBlock: Bool) -> Turn {
    checkThread()
    if mailbox.mayHaveWork { takeMail() }
    turns &+= 1
    if let mainQueue, ready.isEmpty || turns & 15 == 0, mainQueue.drain() { return .worked }
    // When nothing is ready the sleep looks at the descriptors.
    if poller.isActive, turns & 15 == 0 || ready.isEmpty && !mayBlock, poll(), ready.isEmpty {
      // That may be all that somebody turns for.
      return .worked
    }
    // Due timers get their turn even while jobs go on making jobs.
    if !timers.isEmpty, ready.isEmpty || turns & 15 == 0 { takeDueTimers() }
    if let job = ready.popFirst() {
      job.run()
      // One that is busy for long doesn't keep the main actor waiting.
      if turns == 0, !hasSoughtMainQueue { _ = drainsNewMainQueue() }
      return .worked
    }
    if !hasSoughtMainQueue, drainsNewMainQueue() { return .worked }
    return mayBlock ? sleep() : (canContinue ? .waiting : .idle)
  }

  /// Turns until `done` answers true; false when nothing can ever come any more.
  public func run(until done: () -> Bool) -> Bool {
    while !done() {
      if turn(mayBlock: true) == .idle { return done() }
    }
    return true
  }

  /// Turns until nothing can ever come any more.
  public func runUntilIdle() {
    while turn(mayBlock: true) != .idle {}
  }

  /// Looks for the main queue; returns whether there was anything in it.
  private func drainsNewMainQueue() -> Bool {
    hasSoughtMainQueue = true
    mainQueue = MainQueue()
    return mainQueue?.drain() ?? false
  }

  private var canContinue: Bool {
    !ready.isEmpty || !timers.isEmpty || mailbox.externalWork > 0 || mailbox.mayHaveWork
      || outsideTasks > 0 || poller.isActive
  }

  /// Called by code that executes without waiting, at the latest every millisecond: runs the limits of its
  /// time, and has pending signals handled. Returns whether it was time.
  func look(at time: Int64) -> Bool {
    nextLook = time.later(by: 1_000_000)
    var left = 64
    while left > 0, let job = timers.popDue(at: time) {
      left -= 1
      if (job as? Timer)?.isLimit == true { job.run() } else { ready.append(job) }
    }
    onLook?()
    return true
  }

  private func takeMail() {
    for work in mailbox.takeAll() where !isShutDown {
      ready.append(ClosureJob { [unowned self] in work(self) })
    }
  }

  /// A few at a time: those of a thousand that are due at once would only wait in another queue.
  private func takeDueTimers() {
    let time = now()
    var left = ready.isEmpty ? 64 : 8
    while left > 0, let timer = timers.popDue(at: time) {
      ready.append(timer)
      left -= 1
    }
  }

  private func sleep() -> Turn {
    // Order matters: work ends after it has posted, so a count of 0 read first hides no mail.
    let isExternal = mailbox.externalWork > 0 || outsideTasks > 0 || poller.isActive
    if mailbox.mayHaveWork { return .worked }
    guard let deadline = timers.nextDeadline else {
      guard isExternal else { return .idle }
      wait(timeout: -1)
      return .worked
    }
    if !clock.isVirtual {
      let time = now()
      wait(timeout: deadline > time ? deadline - time : 0)
    } else if isExternal {
      wait(timeout: -1)
    } else {
      clock.advance(to: deadline)
    }
    return .worked
  }

  /// Sleeps until something comes from outside or `timeout` nanoseconds have passed (negative: no
  /// limit).
  private func wait(timeout: Int64) {
    var timeout = timeout
    if let monitor = progressMonitor, let rest = monitor.loopRests() {
      timeout = timeout < 0 ? rest : min(rest, timeout)
    }
    let mainQueue = mainQueue?.descriptor ?? -1
    if let deadline = outsideTimers.nextDeadline {
      let time = SystemClock.read(CLOCK_MONOTONIC)
      let left = deadline > time ? deadline - time : 0
      timeout = timeout < 0 ? left : min(left, timeout)
    }
    if poller.isActive {
      poller.wait(timeout: timeout, or: mainQueue)
      poll()
    } else {
      mailbox.wait(timeout: timeout, or: mainQueue)
      takeOutsideTimers()
    }
  }

  /// Tells those who watch descriptors of what is ready; answers whether anything was, or somebody has
  /// woken the loop.
  @discardableResult
  private func poll() -> Bool {
    let (hasTold, isMailReady) = poller.tellReady()
    if isMailReady { mailbox.drain() }
    takeOutsideTimers()
    return hasTold || isMailReady
  }

  private func takeOutsideTimers() {
    guard !outsideTimers.isEmpty else { return }
    let time = SystemClock.read(CLOCK_MONOTONIC)
    while let job = outsideTimers.popDue(at: time) { ready.append(job) }
  }

  /// Ends the process when called on another thread than the loop's own.
  @inline(__always)
  func checkThread() { identity.check() }
}

extension EventLoop {
  /// Which thread a loop, and what belongs to it, is confined to.
  struct Identity: Sendable {
    private let thread: pthread_t

    static var current: Identity { Identity(thread: pthread_self()) }

    @inline(__always)
    var isCurrentThread: Bool { pthread_self() == thread }

    /// Ends the process when called on another thread.
    @inline(__always)
    func check() {
      if !isCurrentThread { trap() }
    }

    @inline(never)
    private func trap() -> Never {
      misuse(
        "an event loop, or a run, op or bucket of it, was used on another thread than its own; "
          + "post to its mailbox")
    }
  }
}
