/// Calls callbacks and continues when they have finished.
protocol CallbackOwner: AnyObject {
  var loop: FlowEventLoop { get }
  /// When a busy callback has to be stopped.
  var callbackDeadline: Int64 { get }
  /// Stops what ends at `callbackDeadline`; returns the error that the callback finishes with.
  func expireCallback() -> FlowError
  /// The callback has finished after a wait.
  func callbackFinished()
}

/// The object with which a waiting callback reports its end. Confined to the loop's thread.
package final class CallbackCompletion {
  // Cleared when it is finished.
  private var owner: (any CallbackOwner)?
  private let canceller: (CallbackCompletion, FlowError) -> Void
  private let describePlace: () -> ByteString?
  private(set) var isFinished = false
  private(set) var error: FlowError?
  /// The answer of a predicate.
  private(set) var isMatch = false
  /// The answer of a function that returns a number of seconds.
  private(set) var seconds: Double?
  /// The kind of the value that it has returned instead.
  private(set) var otherKind: ByteString?
  /// Whether the callback is being called, so that it may still end at once.
  private(set) var isInCall = false
  /// Whether its grace is over, so that it ends now.
  package internal(set) var isCut = false
  /// State that belongs to the callback, such as a coroutine; released when it has finished.
  package var state: AnyObject?

  init(
    owner: any CallbackOwner, place: @escaping () -> ByteString?,
    canceller: @escaping (CallbackCompletion, FlowError) -> Void
  ) {
    self.owner = owner
    describePlace = place
    self.canceller = canceller
  }

  /// Where the code of the callback begins.
  var place: ByteString? { describePlace() }

  /// The code that executes, when the callback provides it.
  var code: (any ExecutingCode)? { state as? any ExecutingCode }

  /// Whether it executes without waiting.
  var isBusy: Bool { isInCall || code?.whereItWaits == nil && state is any ExecutingCode }

  /// Reports that the callback is done, with `error` if it failed. Only the first call counts.
  package func finish(_ error: FlowError? = nil) {
    guard !isFinished, let owner else { return }
    owner.loop.checkThread()
    isFinished = true
    self.error = error
    self.owner = nil
    state = nil
    if !isInCall { owner.callbackFinished() }
  }

  /// Reports the answer of a predicate: whether it matches. Only the first call counts.
  package func answer(_ isMatch: Bool) {
    guard !isFinished else { return }
    self.isMatch = isMatch
    finish()
  }

  /// Reports the answer of a function that returns a number of seconds.
  package func answer(seconds: Double) {
    guard !isFinished else { return }
    self.seconds = seconds
    finish()
  }

  /// Reports that a function that is to return a number of seconds has returned a value of another kind.
  package func answer(otherKind: ByteString) {
    guard !isFinished else { return }
    self.otherKind = otherKind
    finish()
  }

  /// When a busy callback has to be stopped, as `OpContext.deadline`.
  package var deadline: Int64 { owner?.callbackDeadline ?? .max }

  /// Reports that `deadline` has passed while the callback was busy; returns the error to finish
  /// with.
  package func expire() -> FlowError { owner?.expireCallback() ?? .cancelled() }

  /// Stops the callback.
  func cancel(_ error: FlowError) {
    if !isFinished { canceller(self, error) }
  }

  /// Releases its owner, for a loop that is shut down.
  func abandon() {
    owner = nil
    (state as? any Abandonable)?.abandon()
    state = nil
  }

  /// Calls the callback; returns whether it is done.
  func begin(_ call: (CallbackCompletion) -> CallState) -> Bool {
    isInCall = true
    let progress = call(self)
    isInCall = false
    if progress == .finished, !isFinished {
      isFinished = true
      owner = nil
    }
    return isFinished
  }
}

/// Code that executes and can report where it is: the `state` of a context or completion may be
/// one.
package protocol ExecutingCode: AnyObject {
  /// The function that it waits in, and where, such as `flow.sleep at deploy.lua:14`; nil while it
  /// is busy.
  var whereItWaits: ByteString? { get }
}

// `willStart` and `didFinish` of the flows that an execution is in.
extension Execution: CallbackOwner {
  func callbackFinished() { wake(.callback) }

  /// Calls a callback of the innermost flow.
  func call(_ callback: any RunCallback, _ top: Int) -> Advance {
    if isRehearsing { return .moved }
    let run = run
    let made = CallbackCompletion(owner: self, place: { callback.place }) { completion, error in
      callback.cancel(run, completion: completion, error)
    }
    completion = made
    stopRequested = false
    let isDone = made.begin { callback.call(run, completion: $0) }
    engine.stamp = 0
    guard isDone else {
      stopCallback()
      cutIfOverdue()
      return .waiting
    }
    endCallback()
    return .moved
  }

  /// Takes the result of the callback, predicate or cleanup that has finished.
  func endCallback() {
    if decision != nil {
      endQuestion()
      return
    }
    if opCursor.phase == .cleanups {
      endCleanup()
      return
    }
    guard let ended = completion else { return }
    completion = nil
    guard let top = frames.indices.last else {
      group?.take(ended, of: self)
      return
    }
    if frames[top].cursor.block != nil {
      endPredicate(ended, top)
      return
    }
    guard let error = ended.error.map({ attributed($0, to: top) }) else { return }
    if frames[top].cursor.phase == .willStart {
      frames[top].cursor.error = error
    } else if !ended.isCut {
      // A callback that was cut off has been reported.
      run.addLateError(error)
    }
  }
}
