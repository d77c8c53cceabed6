/// A wait of a script: the host's side of an await.
///
/// A function called by Lua returns `LuaCall.wait(_:)`. The coroutine is parked; if that isn't
/// possible, the scheduler runs in place. Once the wait is ready, `finish` produces the results.
/// Owner thread only.
@_spi(Scripting) open class LuaWait {
  // Unchecked exclusivity, of these: only the owner thread uses them, and no access lasts into a
  // call. There can be many waits at a time, so they are small.

  private enum State {
    case pending, ready
    /// The wait is about to end with an error.
    case failing(any Error)
    case failed(any Error)
  }

  // Not public, because the attribute is lost on the way to another module, as with `storedWaiter`.
  @exclusivity(unchecked) private final var state = State.pending

  /// Whether the wait has ended.
  public final var isReady: Bool {
    switch state {
    case .pending, .failing: false
    case .ready, .failed: true
    }
  }

  /// The error that is raised at the wait instead of its results.
  public final var problem: (any Error)? {
    switch state {
    case .pending, .ready: nil
    case .failing(let error), .failed(let error): error
    }
  }

  /// Notified once, when the wait becomes ready: the scheduler's. Kept until then.
  package final var waiter: LuaWaiter? {
    get { storedWaiter }
    set { storedWaiter = newValue }
  }
  @exclusivity(unchecked) private final var storedWaiter: LuaWaiter?

  /// A wait that isn't ready.
  public init() {}

  /// Ends the wait. Only the first end counts.
  public final func ready() {
    guard !isReady else { return }
    noteEnd()
    guard let waiter else { return }
    self.waiter = nil
    waiter.waitIsReady()
  }

  /// Ends the wait as `ready` does, for a caller that continues the waiter itself: the waiter isn't
  /// notified.
  public final func readyForWaiter() {
    noteEnd()
    waiter = nil
  }

  private final func noteEnd() {
    switch state {
    case .pending: state = .ready
    case .failing(let error): state = .failed(error)
    case .ready, .failed: break
    }
  }

  /// Ends the wait with an error that is raised at it, also if it was ready but hasn't continued.
  public final func fail(_ error: any Error) {
    let isFirst = problem == nil
    if isFirst { state = isReady ? .failed(error) : .failing(error) }
    if !isReady {
      abandon()
      ready()
    } else if isFirst {
      discard()
    }
  }

  /// The subject of the wait, in traces: `sleep`.
  open var subject: String { "wait" }

  /// Called when the wait fails before it was ready, so that resources can be released.
  open func abandon() {}

  /// Called when the wait fails after it was ready, or its coroutine never continues, so that its resources can be
  /// given back. Perhaps after `finish`, too.
  open func discard() {}

  /// The results of the wait, on the coroutine that waited.
  open func finish(_ call: LuaCall) throws -> LuaAnswer {
    call.answer()
  }
}

/// The side that continues when a wait is ready.
// A class, because a wait refers to it in half the memory that a protocol takes.
@_spi(Scripting) open class LuaWaiter {
  /// A waiter.
  public init() {}

  /// The wait has become ready: from now on its coroutine can be resumed.
  open func waitIsReady() {}
}

/// The owner of the coroutines and their waits.
package protocol LuaScheduler: AnyObject {
  /// Runs everything else until the wait is ready; if nothing can make it so, fails the wait.
  func pump(_ wait: LuaWait)
}
