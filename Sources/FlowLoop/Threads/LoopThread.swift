internal import FlowSystem
internal import Synchronization

/// A thread of its own with an event loop, for programs whose own threads mustn't wait.
///
/// ```swift
/// let thread = try LoopThread(name: "uploads")
/// let url = try await thread.perform { loop in
///   try await makeUploadFlow().start(on: loop).value.value("url", as: String.self)
/// }
/// await thread.shutdown()
/// ```
///
/// Its owner shuts it down. If the last reference to it is released before that, it shuts down by
/// itself, and nobody waits for it. All its methods may be called on any thread; a loop and everything on
/// it is only used within `run`, `perform` and actors on the thread (`FlowActor`).
///
/// Runs that wait for nothing aren't failed as stalled here, because another thread may still continue
/// them; a shutdown cancels them.
public final class LoopThread: Sendable {
  /// How long work may last after the request to shut down, by default.
  @usableFromInline package static let defaultGrace: Duration = .seconds(30)

  package let core: LoopThreadCore

  /// The name of the thread, in errors and for the system, which shows its first 15 bytes.
  package var name: String { core.name }
  /// The way for other threads to pass work to the loop.
  package let mailbox: LoopMailbox
  /// Runs the code of actors on the thread; see `FlowActor`.
  package let executor: LoopExecutor

  /// Starts the thread, and returns when its loop exists.
  ///
  /// - Parameters:
  ///   - name: The name of the thread.
  ///   - makeLoop: Makes the loop, on the thread.
  /// - Throws: A `SystemError` if the system gives no thread, or no descriptor to wake the loop.
  package init(
    name: String, makingLoop makeLoop: @escaping @Sendable () -> FlowEventLoop
  ) throws(SystemError) {
    core = LoopThreadCore(name)
    (mailbox, executor) = try core.start(makeLoop)
  }

  deinit { core.beginShutdown(grace: Self.defaultGrace) }

  /// Whether the calling code runs on the thread.
  package var isCurrent: Bool { core.isCurrent }

  /// Whether a shutdown has begun: the thread takes no new work.
  public var isShuttingDown: Bool { core.phase != .running }

  /// Runs `work` on the thread, soon, in the order of the calls; returns at once.
  ///
  /// - Returns: Whether the thread takes the work: not after a shutdown has begun. Work that was taken shortly
  ///   before may still be dropped by the end of the thread.
  @discardableResult
  public func post(_ work: @escaping @Sendable (FlowEventLoop) -> Void) -> Bool {
    core.phase == .running && mailbox.postIfOpen(work)
  }

  /// Calls `work` on the thread at its end, when everything else has ended or was abandoned: the last one
  /// first. For what lives on the loop and has to be closed there.
  ///
  /// - Returns: Whether it will be called: not if the thread has already come to its end.
  @discardableResult
  public func atEnd(_ work: @escaping @Sendable (FlowEventLoop) -> Void) -> Bool {
    core.add(atEnd: work)
  }

  /// Shuts the thread down, and waits for its end.
  ///
  /// New work is refused at once. Running work continues for `grace`, or until nothing can come any more; then it
  /// is cancelled, and its cleanups have as long again. Work that still runs then is abandoned, as by
  /// `FlowEventLoop.shutdown`. A body that never returns to the loop keeps the thread, and this waits.
  ///
  /// Further calls wait for the same end; the shortest grace holds. On the thread itself this doesn't wait.
  public func shutdown(grace: Duration = defaultGrace) async {
    core.beginShutdown(grace: grace)
    if isCurrent { return }
    await withCheckedContinuation { core.resume(atEnd: $0) }
  }

  /// As `shutdown`, but blocks the calling thread: for programs and tests without async code.
  @available(*, noasync, message: "use shutdown()")
  public func shutdownAndWait(grace: Duration = defaultGrace) {
    core.beginShutdown(grace: grace)
    if !isCurrent { core.waitForEnd() }
  }
}

/// The state that a `LoopThread` and its thread share.
// The monitor guards what changes, except for the loop, which only the thread touches.
package final class LoopThreadCore: @unchecked Sendable {
  /// The course of the thread. Each phase follows the one above it.
  package enum Phase: UInt8, AtomicRepresentable {
    /// It takes work.
    case running
    /// Work that has begun may end by itself.
    case ending
    /// Work that has begun was cancelled.
    case cancelling
    /// Nothing runs any more.
    case over
  }

  let name: String

  private let monitor = Monitor()
  private let storedPhase = Atomic<Phase>(.running)
  private var thread: pthread_t?
  private var loop: FlowEventLoop?
  private var mailbox: LoopMailbox?
  private var startError: SystemError?
  private var makeLoop: (@Sendable () -> FlowEventLoop)?
  private var hasEnded = false
  private var waiters: [CheckedContinuation<Void, Never>] = []
  private var endings: [@Sendable (FlowEventLoop) -> Void] = []
  private var cancellers: [@Sendable () -> Void] = []
  /// The time of each phase after the request to shut down, in nanoseconds.
  private var grace: Int64 = 0
  /// When the present phase ends, on the monotonic clock.
  private var deadline: Int64 = .max

  init(_ name: String) {
    self.name = name
  }

  package var phase: Phase { storedPhase.load(ordering: .acquiring) }

  var isCurrent: Bool {
    let thread = monitor.locked { self.thread }
    return thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false
  }

  /// The loop, on its thread.
  package func currentLoop() throws(SystemError) -> FlowEventLoop {
    guard isCurrent, let loop else { throw endError }
    return loop
  }

  /// The error of using the thread after its end.
  package var endError: SystemError {
    SystemError("the thread '\(ByteString(name))' is shut down", code: ECANCELED)
  }

  // MARK: Start

  func start(
    _ makeLoop: @escaping @Sendable () -> FlowEventLoop
  ) throws(SystemError) -> (LoopMailbox, LoopExecutor) {
    self.makeLoop = makeLoop
    do throws(SystemError) {
      try SignalFreeThread.start(stackSize: SignalFreeThread.mainStackSize) { [self] in work() }
    } catch {
      throw SystemError("no thread for '\(ByteString(name))': \(error.message)", code: error.code)
    }
    let made: (mailbox: LoopMailbox?, executor: LoopExecutor?) = monitor.locked {
      while mailbox == nil, startError == nil { monitor.wait() }
      return (mailbox, startedExecutor)
    }
    guard let mailbox = made.mailbox, let executor = made.executor else {
      throw startError ?? endError
    }
    return (mailbox, executor)
  }

  private var startedExecutor: LoopExecutor?

  /// The whole life of the thread.
  private func work() {
    nameThread()
    guard let loop = begin() else { return }
    serve(loop)
    end(loop)
  }

  private func begin() -> FlowEventLoop? {
    let make = makeLoop
    makeLoop = nil
    guard let loop = make?() else { return nil }
    do throws(SystemError) { try loop.mailbox.open() } catch {
      loop.shutdown()
      monitor.locked {
        startError = error
        monitor.broadcast()
      }
      return nil
    }
    self.loop = loop
    monitor.locked {
      thread = pthread_self()
      startedExecutor = loop.loopExecutor
      mailbox = loop.mailbox
      monitor.broadcast()
    }
    return loop
  }

  private func nameThread() {
    var bytes = Array(name.utf8.prefix(15).map { CChar(bitPattern: $0) })
    bytes.append(0)
    flowsystem_name_thread(bytes)
  }

  // MARK: Course

  private func serve(_ loop: FlowEventLoop) {
    while phase == .running {
      if loop.turn(mayBlock: true) == .idle, phase == .running { loop.mailbox.waitForMail() }
    }
    while phase == .ending, loop.turn(mayBlock: true) != .idle {}
    // Nothing can come any more, or the grace is over.
    advance(from: .ending)
    loop.client?.cancelAll(reason: "the thread '\(ByteString(name))' is shut down", on: loop)
    while phase == .cancelling, loop.turn(mayBlock: true) != .idle {}
  }

  private func end(_ loop: FlowEventLoop) {
    var work = takeEndings()
    while !work.isEmpty {
      while let next = work.popLast() { next(loop) }
      work = takeEndings()
    }
    loop.shutdown()
    self.loop = nil
    let waiters = monitor.locked {
      hasEnded = true
      thread = nil
      cancellers = []
      monitor.broadcast()
      defer { self.waiters = [] }
      return self.waiters
    }
    for each in waiters { each.resume() }
  }

  /// The calls for the end. When there is none left, none is taken any more.
  private func takeEndings() -> [@Sendable (FlowEventLoop) -> Void] {
    monitor.locked {
      if endings.isEmpty { storedPhase.store(.over, ordering: .releasing) }
      defer { endings = [] }
      return endings
    }
  }

  func add(atEnd work: @escaping @Sendable (FlowEventLoop) -> Void) -> Bool {
    monitor.locked {
      if phase == .over { return false }
      endings.append(work)
      return true
    }
  }

  /// Calls `cancel` on some thread when the grace of a shutdown is over: for code that keeps the thread from
  /// noticing it.
  package func add(canceller cancel: @escaping @Sendable () -> Void) {
    monitor.locked { cancellers.append(cancel) }
  }

  // MARK: Shutdown

  func beginShutdown(grace: Duration) {
    let nanoseconds = grace.clampedNanoseconds
    let isFirst = monitor.locked {
      let end = SystemClock.read(CLOCK_MONOTONIC).later(by: nanoseconds)
      if end < deadline || phase == .running {
        self.grace = nanoseconds
        deadline = end
        monitor.broadcast()
      }
      guard phase == .running else { return false }
      storedPhase.store(.ending, ordering: .releasing)
      return true
    }
    guard isFirst else { return }
    wake()
    HelperThreads.shared.run { [self] in HelperThreads.shared.standAside(watch) }
  }

  /// Waits for the ends of the phases, on a helper thread.
  private func watch() {
    for phase in [Phase.ending, .cancelling] {
      let cancellers = monitor.locked { () -> [@Sendable () -> Void]? in
        while !hasEnded, self.phase == phase, SystemClock.read(CLOCK_MONOTONIC) < deadline {
          if deadline == .max { monitor.wait() } else { _ = monitor.wait(until: deadline) }
        }
        return hasEnded ? nil : self.cancellers
      }
      guard let cancellers else { return }
      advance(from: phase)
      if phase == .ending { for cancel in cancellers { cancel() } }
      wake()
    }
  }

  /// Begins the next phase, unless it has begun.
  private func advance(from phase: Phase) {
    monitor.locked {
      guard self.phase == phase else { return }
      deadline = SystemClock.read(CLOCK_MONOTONIC).later(by: grace)
      storedPhase.store(phase == .ending ? .cancelling : .over, ordering: .releasing)
      monitor.broadcast()
    }
  }

  private func wake() { monitor.locked { mailbox }?.post { _ in } }

  func resume(atEnd continuation: CheckedContinuation<Void, Never>) {
    let isOver = monitor.locked {
      if !hasEnded { waiters.append(continuation) }
      return hasEnded
    }
    if isOver { continuation.resume() }
  }

  func waitForEnd() {
    let wait = { [self] in
      monitor.locked { while !hasEnded { monitor.wait() } }
    }
    if let threads = HelperThreads.current { threads.standAside(wait) } else { wait() }
  }
}
