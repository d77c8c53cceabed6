/// Something that a script waits for: the host's side of an await.
///
/// A function called by Lua answers `LuaCall.wait(_:)`; the coroutine is parked (or the scheduler
/// pumped, where it can't be), and once the wait is ready `finish` produces the results.
/// Owner thread only.
open class LuaWait {
  // Unchecked exclusivity, of these: the owner thread alone touches them, and no access lasts into a
  // call. There can be many waits at a time, so they are small.

  /// Whether there is nothing to wait for any more.
  public final var isReady: Bool { hasEnded }
  // Not public, because the attribute is lost on the way to another module, as with `storedWaiter`.
  @exclusivity(unchecked) private final var hasEnded = false

  /// What is raised at the wait instead of its results.
  @exclusivity(unchecked) public final private(set) var problem: (any Error)?

  /// Told once, when the wait becomes ready: the scheduler's. Held until then.
  public final var waiter: (any LuaWaiter)? {
    get { storedWaiter }
    set { storedWaiter = newValue }
  }
  @exclusivity(unchecked) private final var storedWaiter: (any LuaWaiter)?

  /// A wait that isn't ready.
  public init() {}

  /// Ends the wait. Only the first end counts.
  public final func ready() {
    guard !isReady else { return }
    hasEnded = true
    guard let waiter else { return }
    self.waiter = nil
    waiter.waitIsReady()
  }

  /// Ends the wait as `ready` does, for whoever sees to it that the waiter goes on: it isn't told.
  public final func readyForWaiter() {
    hasEnded = true
    waiter = nil
  }

  /// Ends the wait with an error that is raised at it, also when it was ready but hasn't gone on.
  public final func fail(_ error: any Error) {
    if problem == nil { problem = error }
    if !isReady { abandon() }
    ready()
  }

  /// Called when the wait fails before what it waited for has come: to let go of that.
  open func abandon() {}

  /// The results of the wait, on the coroutine that waited.
  open func finish(_ call: LuaCall) throws -> LuaAnswer {
    call.answer()
  }
}

/// Who goes on when a wait is ready.
public protocol LuaWaiter: AnyObject {
  /// The wait has become ready: from now on its coroutine can be resumed.
  func waitIsReady()
}

/// Who runs coroutines and knows what they wait for.
public protocol LuaScheduler: AnyObject {
  /// Runs everything else until the wait is ready; if nothing can make it so, fails the wait.
  func pump(_ wait: LuaWait)
}
