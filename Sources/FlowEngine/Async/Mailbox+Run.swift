internal import Synchronization

/// What `Mailbox.run` does on a loop's thread.
public typealias LoopOperation<Success> =
  nonisolated(nonsending) @Sendable (EventLoop) async throws -> Success

extension Mailbox {
  /// Does something on the loop's thread and returns its result; for Swift tasks anywhere.
  ///
  /// The way from `async` code into a loop that some thread runs: start a flow there, await
  /// `run.value`, and return what is Sendable of it. Until it is done the loop isn't idle. Cancelling
  /// the calling task cancels what is done there.
  ///
  /// ```swift
  /// let url = try await mailbox.run { loop in
  ///   try await makeUploadFlow().start(on: loop).value.string("url")
  /// }
  /// ```
  ///
  /// - Parameter operation: What to do; it runs on the loop's thread, whatever it awaits in between.
  /// - Returns: Its result.
  /// - Throws: What it throws; `CancellationError` when the loop is shut down or gone before it ends.
  public func run<Success: Sendable>(
    _ operation: @escaping LoopOperation<Success>
  ) async throws -> Success {
    let call = MailboxCall()
    // A loop that sleeps stays there for it; released with the call's last reference.
    let external = begin()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let answer = MailboxAnswer(continuation)
        let isPosted = postIfOpen { loop in
          let task = CallTask(operation, answer, on: loop)
          task.start(on: loop)
          call.begin(task)
          external.end()
        }
        if !isPosted { answer.give(.failure(CancellationError())) }
      }
    } onCancel: {
      post { _ in call.cancel() }
    }
  }
}

/// Brings a call and its cancellation together.
// Touched on the loop's thread only, by what is posted.
private final class MailboxCall: @unchecked Sendable {
  private var task: LoopTask?

  /// What is posted comes in order, so a cancellation comes behind the beginning or, of a task that was
  /// cancelled before, in front of it.
  private var isCancelled = false

  func begin(_ task: LoopTask) {
    if isCancelled { task.cancel() }
    if !task.hasEnded { self.task = task }
  }

  func cancel() {
    isCancelled = true
    task?.cancel()
    task = nil
  }
}

/// The answer to a call: given once, at the latest when nobody can give another.
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

/// What a call does on the loop.
private final class CallTask<Success: Sendable>: LoopTask, @unchecked Sendable {
  private let operation: LoopOperation<Success>
  private let answer: MailboxAnswer<Success>
  // Cleared at the end: the loop holds this task until then.
  private var loop: EventLoop?
  private var result: Result<Success, any Error>?

  init(
    _ operation: @escaping LoopOperation<Success>, _ answer: MailboxAnswer<Success>,
    on loop: EventLoop
  ) {
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
    if let result { answer.give(result) }
  }

  /// What waits for something even now never goes on; the caller does.
  override func abandon() {
    super.abandon()
    loop = nil
    answer.give(.failure(CancellationError()))
  }
}
