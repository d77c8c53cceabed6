/// One wait of a Swift task for a job of a loop.
// All properties but `identity` and `mailbox`, which never change, are touched on the loop's thread
// only.
final class LoopWait: TaskObserver, @unchecked Sendable {
  private let identity: FlowEventLoop.Identity
  private let mailbox: LoopMailbox
  /// Set while the wait is for a task.
  var waitingTask: AnyFlowTask?
  private var continuation: UnsafeContinuation<Void, Never>?
  private var isOver = false
  private var isCancelled = false

  private init(_ loop: FlowEventLoop) {
    identity = loop.identity
    mailbox = loop.mailbox
  }

  /// Waits until the loop has run a job.
  ///
  /// - Parameters:
  ///   - loop: The loop; called on its thread.
  ///   - isolation: The actor of the caller, which has to be on that thread.
  ///   - begin: Gets the job and makes sure that it is enqueued.
  /// - Returns: Whether the job ran; false when the task was cancelled first.
  static func wait(
    on loop: FlowEventLoop, isolation: isolated (any Actor)? = #isolation, begin: (LoopWait) -> Void
  ) async -> Bool {
    let wait = LoopWait(loop)
    await withTaskCancellationHandler {
      // A closure that doesn't use the isolation would leave the actor.
      _ = isolation
      await wait.suspend(on: loop, begin)
    } onCancel: {
      wait.cancel()
    }
    return !wait.isCancelled
  }

  /// Waits until the loop has run a job, regardless of cancellation.
  static nonisolated(nonsending) func waitShielded(
    on loop: FlowEventLoop, begin: (LoopWait) -> Void
  ) async {
    await LoopWait(loop).suspend(on: loop, begin)
  }

  private func suspend(
    on loop: FlowEventLoop, isolation: isolated (any Actor)? = #isolation,
    _ begin: (LoopWait) -> Void
  ) async {
    identity.check()
    // A task that was cancelled before knows it already.
    if isOver { return }
    begin(self)
    if isOver { return }
    guard let task = LoopTask.current else {
      // Otherwise Swift would run a task of an actor on another thread for a moment, during which
      // the loop ends.
      await withTaskExecutorPreference(loop.taskSupport.executor) {
        _ = isolation
        await withUnsafeContinuation { continuation = $0 }
      }
      return
    }
    task.beginWait()
    await withUnsafeContinuation { continuation = $0 }
    task.endWait()
  }

  /// Called by the loop.
  func run() {
    guard !isOver else { return }
    isOver = true
    resume()
  }

  /// Called on any thread.
  fileprivate func cancel() {
    if identity.isCurrentThread {
      end()
    } else {
      mailbox.post { _ in self.end() }
    }
  }

  private func end() {
    guard !isOver else { return }
    isOver = true
    isCancelled = true
    resume()
  }

  private func resume() {
    let continuation = continuation
    self.continuation = nil
    continuation?.resume()
  }
}

/// Ends a wait when it is released: nothing can end it any other way then.
private final class WaitHolder {
  let wait: LoopWait

  init(_ wait: LoopWait) { self.wait = wait }

  deinit { wait.cancel() }
}

// Waits of code that `perform` runs. They end when the loop is shut down.
extension FlowEventLoop {
  /// Suspends the calling task until a function is called with a value.
  ///
  /// - Parameter begin: Gets the function and passes it to what calls it, on the loop's thread.
  /// - Returns: The value of the first call; nil when the task is cancelled, and when the function is released without
  ///   a call.
  package nonisolated(nonsending) func value<Value>(
    _ begin: (@escaping (Value) -> Void) -> Void
  ) async -> Value? {
    var value: Value?
    _ = await LoopWait.wait(on: self) { wait in
      let holder = WaitHolder(wait)
      begin {
        if value == nil { value = $0 }
        holder.wait.run()
      }
    }
    return value
  }

  /// Runs work that may block on a helper thread. Until then the loop isn't idle.
  ///
  /// - Parameter work: The work.
  /// - Returns: Its result.
  /// - Throws: Its error; one of kind `cancelled` when the loop is shut down.
  package nonisolated(nonsending) func onHelperThread<Value: Sendable>(
    _ work: @escaping @Sendable () throws -> Value
  ) async throws(FlowError) -> Value {
    let result: Result<Value, FlowError>? = await value { then in
      offload({ Result { try work() }.mapError { .from($0) } }, then: then)
    }
    guard let result else { throw .cancelled() }
    return try result.get()
  }

  /// Suspends the calling task for some real time, during which the loop isn't idle.
  ///
  /// - Parameter duration: How long.
  /// - Throws: A `FlowError` of kind `cancelled` when the loop is shut down.
  package nonisolated(nonsending) func pause(_ duration: Duration) async throws(FlowError) {
    var timer: LoopTimer?
    let end: Void? = await value { then in timer = scheduleOutside(after: duration) { then(()) } }
    timer?.cancel()
    if end == nil { throw .cancelled() }
  }
}

extension FlowEventLoop {
  /// Suspends the calling task for some time of the loop's clock, so that virtual time works.
  ///
  /// Called on the loop's thread, where the task also continues. `clock` is for all threads.
  ///
  /// ```swift
  /// try await loop.sleep(for: .seconds(1))
  /// ```
  ///
  /// - Parameter duration: How long; a duration that isn't positive doesn't wait.
  /// - Throws: `CancellationError`, at once when the task is cancelled.
  public nonisolated(nonsending) func sleep(for duration: Duration) async throws {
    try await sleep(untilTime: deadline(after: duration))
  }

  /// Suspends the calling task until a time of the loop's clock, in nanoseconds; see `sleep(for:)`.
  nonisolated(nonsending) func sleep(untilTime deadline: Int64) async throws {
    var timer: LoopTimer?
    let isDue = await LoopWait.wait(on: self) { timer = schedule(at: deadline, $0) }
    timer?.cancel()
    if !isDue { throw CancellationError() }
  }
}
