internal import Synchronization

/// The code that `LoopMailbox.perform` runs on a loop's thread.
package typealias LoopOperation<Success> =
  nonisolated(nonsending) @Sendable (FlowEventLoop) async throws -> Success

extension LoopMailbox {
  /// Runs code on the loop's thread and returns its result; for any Swift task.
  ///
  /// `async` code reaches a loop of another thread with it: start a flow there, await `run.value`,
  /// and return a Sendable part of it. Until the code has ended the loop isn't idle. Cancelling the
  /// calling task cancels the code.
  ///
  /// ```swift
  /// let url = try await mailbox.perform { loop in
  ///   try await makeUploadFlow().start(on: loop).value.value("url", as: String.self)
  /// }
  /// ```
  ///
  /// - operation: The code; it always runs on the loop's thread, whatever it awaits in between.
  /// - Returns: Its result.
  /// - Throws: The error of the code; `CancellationError` when the loop is shut down or released
  ///   before the code ends.
  public func perform<Success: Sendable>(
    _ operation:
      nonisolated(nonsending) @escaping @Sendable (FlowEventLoop) async throws -> Success
  ) async throws -> Success {
    let call = MailboxCall()
    // A loop that sleeps stays alive because of it; released with the call's last reference.
    let external = begin()
    let context = TaskContext()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let answer = MailboxAnswer(continuation)
        let isPosted = postIfOpen { loop in
          let task = CallTask(operation, answer, call, on: loop)
          // Before the code, which may run the loop in place and would wait for this.
          external.end()
          task.start(on: loop, in: context)
          call.begin(task)
        }
        if !isPosted { answer.give(.failure(CancellationError())) }
      }
    } onCancel: {
      post { _ in call.cancel() }
      // The loop may be busy: code that lets it take a turn has what was posted.
      call.notifyWatches()
    }
  }
}

/// Connects a call with its cancellation.
// Touched on the loop's thread only, by posted closures.
final class MailboxCall: @unchecked Sendable {
  private var task: LoopTask?
  private let watches = Locked(Watches())

  private struct Watches {
    var isCancelled = false
    var lastNumber: UInt64 = 0
    var actions: [UInt64: @Sendable () -> Void] = [:]
  }

  /// Posted closures run in order: a cancellation comes after the start of the call or, for a task
  /// that was cancelled earlier, before it.
  private var isCancelled = false

  func begin(_ task: LoopTask) {
    if isCancelled { task.cancel() }
    if !task.hasEnded { self.task = task }
  }

  func cancel() {
    isCancelled = true
    task?.cancel()
    end()
  }

  /// The task refers to this: until one of them lets go, neither is released.
  fileprivate func end() { task = nil }

  /// Calls what watches the caller; on the thread that cancels it.
  func notifyWatches() {
    let actions = watches.withLock { watches in
      watches.isCancelled = true
      return Array(watches.actions.values)
    }
    for action in actions { action() }
  }

  fileprivate func add(_ action: @escaping @Sendable () -> Void) -> UInt64 {
    let (number, isLate) = watches.withLock { watches in
      watches.lastNumber += 1
      watches.actions[watches.lastNumber] = action
      return (watches.lastNumber, watches.isCancelled)
    }
    if isLate { action() }
    return number
  }

  fileprivate func remove(_ number: UInt64) { watches.withLock { $0.actions[number] = nil } }
}

/// Learns that the caller of `LoopMailbox.perform` is cancelled while the code of the call keeps the loop's thread busy.
package struct CallerWatch {
  fileprivate let call: MailboxCall
  fileprivate let number: UInt64

  /// Ends it.
  package func end() { call.remove(number) }
}

extension FlowEventLoop {
  /// Calls `action` when the caller of the running `LoopMailbox.perform` is cancelled, on the thread that does it, or at once if it
  /// has been; nil outside of such calls.
  package func watchCaller(_ action: @escaping @Sendable () -> Void) -> CallerWatch? {
    guard let call = LoopTask.current?.caller else { return nil }
    return CallerWatch(call: call, number: call.add(action))
  }
}

/// The answer to a call: given once, at the latest when nothing else can give one.
private final class MailboxAnswer<Success: Sendable>: Sendable {
  private let continuation: CheckedContinuation<Success, any Error>
  private let isGiven = Atomic<Bool>(false)

  init(_ continuation: CheckedContinuation<Success, any Error>) {
    self.continuation = continuation
  }

  deinit { give(.failure(CancellationError())) }

  func give(_ result: Result<Success, any Error>) {
    if !isGiven.exchange(true, ordering: .acquiringAndReleasing) {
      continuation.resume(with: result)
    }
  }
}

/// The work of a call on the loop.
private final class CallTask<Success: Sendable>: LoopTask, @unchecked Sendable {
  private let operation: LoopOperation<Success>
  private let answer: MailboxAnswer<Success>
  private let call: MailboxCall
  // Cleared at the end: the loop retains this task until then.
  private var loop: FlowEventLoop?
  private var result: Result<Success, any Error>?

  init(
    _ operation: @escaping LoopOperation<Success>, _ answer: MailboxAnswer<Success>,
    _ call: MailboxCall, on loop: FlowEventLoop
  ) {
    self.call = call
    self.operation = operation
    self.answer = answer
    self.loop = loop
    super.init(on: loop)
  }

  override nonisolated(nonsending) func perform() async {
    guard let loop else { return }
    do {
      result = .success(try await operation(loop))
    } catch {
      result = .failure(error)
    }
  }

  override func didEnd() {
    loop = nil
    call.end()
    if let result { answer.give(result) }
  }

  override var caller: MailboxCall? { call }

  override func stopWithLoop(reason: ByteString) { cancel() }

  /// Code that still waits never continues; only the caller does.
  override func abandon() {
    super.abandon()
    loop = nil
    call.end()
    answer.give(.failure(CancellationError()))
  }
}
