/// Something to call when a flow starts or has finished. Called on the loop's thread.
public protocol RunCallback: AnyObject {
  /// Does its work. `.suspended` promises a later `completion.finish()`.
  func call(_ run: Run, completion: CallbackCompletion) -> OpProgress
  /// Asks a suspended callback to stop because of `error`; it must finish sooner or later.
  ///
  /// One that is called after the end of a flow is asked only when the grace is over:
  /// `completion.isCut` says so, and it must finish at once.
  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError)
  /// Where its code begins, such as `deploy.lua:12`; nil where that isn't known.
  var place: ByteString? { get }
}

extension RunCallback {
  /// Not known.
  public var place: ByteString? { nil }

  /// Doesn't wait for it any longer.
  public func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
    completion.finish(error)
  }
}

/// How a callback that waits says that it is done. Confined to the loop's thread.
public final class CallbackCompletion {
  // Cleared when it is finished.
  private var strand: Strand?
  private let canceller: (CallbackCompletion, FlowError) -> Void
  private let describePlace: () -> ByteString?
  private(set) var isFinished = false
  private(set) var error: FlowError?
  /// What a predicate has answered.
  private(set) var isMatch = false
  /// What a function that was asked for a time has answered.
  private(set) var seconds: Double?
  /// Whether the callback is being called, and may still end at once.
  private(set) var isInCall = false
  /// Whether its grace is over, so that it ends now.
  public internal(set) var isCut = false
  /// The callback's own, such as a coroutine; released when it has finished.
  public var state: AnyObject?

  init(
    strand: Strand, place: @escaping () -> ByteString?,
    canceller: @escaping (CallbackCompletion, FlowError) -> Void
  ) {
    self.strand = strand
    describePlace = place
    self.canceller = canceller
  }

  /// Where the code of the callback begins.
  var place: ByteString? { describePlace() }

  /// The code that executes, where the callback says so.
  var code: (any ExecutingCode)? { state as? any ExecutingCode }

  /// Whether it doesn't wait.
  var isBusy: Bool { isInCall || code?.whereItWaits == nil && state is any ExecutingCode }

  /// Says that the callback is done, with `error` if it failed. Only the first call counts.
  public func finish(_ error: FlowError? = nil) {
    guard !isFinished, let strand else { return }
    strand.loop.checkThread()
    isFinished = true
    self.error = error
    self.strand = nil
    state = nil
    if !isInCall { strand.wake(.callback) }
  }

  /// Says that a predicate is done, and whether it matches. Only the first call counts.
  public func answer(_ isMatch: Bool) {
    guard !isFinished else { return }
    self.isMatch = isMatch
    finish()
  }

  /// The same with a number of seconds.
  package func answer(seconds: Double) {
    guard !isFinished else { return }
    self.seconds = seconds
    finish()
  }

  /// When the time of a callback that is busy is over, as `OpContext.deadline`.
  public var deadline: Int64 { strand?.callbackDeadline ?? .max }

  /// Says that `deadline` has passed while the callback was busy; answers what to finish with.
  public func expire() -> FlowError { strand?.expireCallback() ?? .cancelled() }

  /// Asks the callback to stop.
  func cancel(_ error: FlowError) {
    if !isFinished { canceller(self, error) }
  }

  /// Lets go of the strand, of a loop that is shut down.
  func abandon() {
    strand = nil
    state = nil
  }

  /// Calls the callback; answers whether it is done.
  func begin(_ call: (CallbackCompletion) -> OpProgress) -> Bool {
    isInCall = true
    let progress = call(self)
    isInCall = false
    if progress == .finished, !isFinished {
      isFinished = true
      strand = nil
    }
    return isFinished
  }
}

/// Code that executes and can say where it is: what the `state` of a context or completion may be.
public protocol ExecutingCode: AnyObject {
  /// What it waits in, and where, such as `flow.sleep at deploy.lua:14`; nil while it is busy.
  var whereItWaits: ByteString? { get }
}

/// A synchronous Swift closure as a callback.
final class ClosureCallback: RunCallback {
  private let body: (Run) throws -> Void

  init(_ body: @escaping (Run) throws -> Void) {
    self.body = body
  }

  func call(_ run: Run, completion: CallbackCompletion) -> OpProgress {
    do {
      try body(run)
    } catch {
      completion.finish(.from(error))
    }
    return .finished
  }
}
