/// Work of an event loop as a service of a program: `run()` has the shape of ServiceLifecycle's `Service`, and
/// `shutdown()` ends it gracefully.
///
/// The loop runs on a thread of its own, and is the service's alone: a shutdown stops all runs and tasks there. With
/// a grace it first lets them end by themselves.
///
/// ```swift
/// let service = LoopService(on: try LoopThread(name: "jobs"), grace: .seconds(10)) { loop in
///   while !LoopService.isShuttingDown { _ = try await makeFlow("next").start(on: loop).value }
/// }
/// try await service.run()
/// ```
public final class LoopService: Sendable {
  private let mailbox: LoopMailbox
  /// Kept for the service; nil for a loop that the program runs itself.
  private let thread: LoopThread?
  private let operation: LoopOperation<Void>
  private let reason: ByteString
  private let grace: Duration
  /// Stops code that keeps the loop from taking a stop; on any thread.
  private let interrupt: @Sendable (_ reason: ByteString) -> Void

  private struct State {
    var isShuttingDown = false
    /// Whether everything on the loop is being cancelled.
    var isStopped = false
    /// The operation, while it runs.
    var task: Task<Void, any Error>?
    /// Waits for the end of the grace.
    var timer: Task<Void, Never>?
  }
  private let state = Locked(State())

  /// 34 years, which no clock of the system overflows with.
  private static let longestGrace: Duration = .seconds(1 << 30)

  /// The service whose operation is running.
  @TaskLocal private static var current: LoopService?

  /// Whether a shutdown of the service has begun, whose operation calls this: an operation with a grace looks
  /// at it before it begins something new.
  public static var isShuttingDown: Bool { current?.state.withLock { $0.isShuttingDown } ?? false }

  /// Makes a service on a thread; `run()` starts it.
  ///
  /// - Parameters:
  ///   - thread: The thread. The service keeps it; its owner shuts it down after the service.
  ///   - reason: The reason that runs show which a shutdown stops.
  ///   - grace: How long the operation and what runs on the loop may continue after a shutdown has begun, before
  ///     they are cancelled; see `isShuttingDown`.
  ///   - operation: The work, on the thread: it starts flows, and awaits them or whatever tells it to start
  ///     the next one. A shutdown cancels it after the grace.
  public convenience init(
    on thread: LoopThread, reason: some FlowText = "shutting down" as ByteString,
    grace: Duration = .zero,
    _ operation: nonisolated(nonsending) @escaping @Sendable (FlowEventLoop) async throws -> Void
  ) {
    self.init(on: thread.mailbox, of: thread, reason: reason.byteString, grace: grace, operation)
  }

  /// Makes a service on a loop that the program runs itself, until the service has ended; `run()` starts it.
  ///
  /// - Parameters:
  ///   - mailbox: The mailbox of the loop.
  ///   - reason: The reason that runs show which a shutdown stops.
  ///   - grace: How long the operation and what runs on the loop may continue after a shutdown has begun.
  ///   - operation: The work, on the loop's thread. A shutdown cancels it after the grace.
  public convenience init(
    on mailbox: LoopMailbox, reason: some FlowText = "shutting down" as ByteString,
    grace: Duration = .zero,
    _ operation: nonisolated(nonsending) @escaping @Sendable (FlowEventLoop) async throws -> Void
  ) {
    self.init(on: mailbox, of: nil, reason: reason.byteString, grace: grace, operation)
  }

  /// Makes a service; `interrupt` stops code that keeps the loop from taking a stop.
  package init(
    on mailbox: LoopMailbox, of thread: LoopThread?, reason: ByteString, grace: Duration,
    interrupt: @escaping @Sendable (_ reason: ByteString) -> Void = { _ in },
    _ operation: @escaping LoopOperation<Void>
  ) {
    self.mailbox = mailbox
    self.thread = thread
    self.reason = reason
    self.grace = grace
    self.interrupt = interrupt
    self.operation = operation
  }

  /// Runs the operation until it returns or throws.
  ///
  /// It ends after `shutdown()`, when the grace is over or nothing runs any more, and as soon as the calling task is
  /// cancelled. First it stops everything on the loop, and waits until all cleanups have run. It cuts off ops that
  /// ignore a stop after `FlowEventLoop.gracePeriod`, cleanups after `FlowEventLoop.cleanupGrace`. Call it once.
  ///
  /// - Throws: The error of the operation, unless it is about the stop; `CancellationError` when the calling
  ///   task was cancelled, or the loop is shut down.
  public func run() async throws {
    let task = state.withLock { state -> Task<Void, any Error>? in
      if state.isShuttingDown { return nil }
      let task = Task { try await mailbox.perform { loop in try await self.perform(on: loop) } }
      state.task = task
      return task
    }
    guard let task else { return }
    let result = await withTaskCancellationHandler {
      let result = await task.result
      await finishRest()
      return result
    } onCancel: {
      stop(task)
    }
    let isShuttingDown = state.withLock { state in
      state.task = nil
      state.timer?.cancel()
      state.timer = nil
      return state.isShuttingDown
    }
    if isShuttingDown || Task.isCancelled { await stopLoop() }
    try Task.checkCancellation()
    do {
      try result.get()
    } catch  where isShuttingDown && Self.isStop(error) {
      return
    }
  }

  /// Stops the service gracefully: its runs and tasks may end within the grace, then they are cancelled with the
  /// reason, and their cleanups run; then `run()` returns. From any thread; a service that isn't running
  /// never starts.
  public func shutdown() {
    let task = state.withLock { state -> Task<Void, any Error>? in
      let isFirst = !state.isShuttingDown
      state.isShuttingDown = true
      guard isFirst, let task = state.task else { return nil }
      guard grace > .zero else { return task }
      state.timer = Task { [grace] in
        do { try await Task.sleep(for: min(grace, Self.longestGrace)) } catch { return }
        stop(task)
      }
      return nil
    }
    if let task { stop(task) }
  }

  nonisolated(nonsending) private func perform(on loop: FlowEventLoop) async throws {
    try await Self.$current.withValue(self) { try await operation(loop) }
  }

  /// Waits during the grace for what the operation has left.
  private func finishRest() async {
    let isEnding = state.withLock { $0.isShuttingDown && !$0.isStopped }
    guard isEnding else { return }
    // In a task of its own: a cancellation stops what it waits for.
    let task = Task { [mailbox] in
      try await mailbox.perform { loop in
        while let next = loop.pendingTasks.first, !self.state.withLock({ $0.isStopped }) {
          try await next.wait()
        }
      }
    }
    _ = await task.result
  }

  private func stop(_ task: Task<Void, any Error>) {
    state.withLock { $0.isStopped = true }
    interrupt(reason)
    // The runs first, so that they have the reason.
    let isPosted = mailbox.postIfOpen { [reason] loop in
      for each in loop.pendingTasks { each.cancel(reason: reason) }
      task.cancel()
    }
    if !isPosted { task.cancel() }
  }

  /// Stops what the operation has left. In a task of its own, which nobody cancels.
  private func stopLoop() async {
    let task = Task { [mailbox, reason] in
      try await mailbox.perform { loop in try await loop.cancelPending(reason: reason) }
    }
    // A loop that is shut down has nothing to stop.
    _ = await task.result
  }

  private static func isStop(_ error: any Error) -> Bool {
    error is CancellationError || (error as? FlowError)?.kind == .cancelled
  }
}

extension FlowEventLoop {
  /// Cancels all runs and tasks, also those that their cleanups start, and waits until all have ended.
  nonisolated(nonsending) fileprivate func cancelPending(reason: ByteString) async throws {
    var newest: UInt64 = 0
    // A callback may start a flow again whenever the previous one is cancelled.
    var rounds = 100
    while rounds > 0, let next = pendingTasks.first {
      if newestTask > newest { rounds -= 1 }
      for task in pendingTasks where task.id > newest { task.cancel(reason: reason) }
      newest = newestTask
      try await next.wait()
    }
  }
}
