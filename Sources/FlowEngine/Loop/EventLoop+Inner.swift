/// Loops within loops: how a part of a program runs to its end on a clock of its own while the rest
/// stands still.
extension EventLoop {
  /// A loop that runs within calls of another one, on the same thread; see `standStill`.
  ///
  /// It shares the names of keys and the list of unobserved failures, makes values as the outer loop
  /// does, and tells the same sinks and monitors. Runs, tasks, timers and programs are its own.
  ///
  /// - Parameters:
  ///   - outer: The loop that is to stand still meanwhile.
  ///   - clock: Where it takes its time from.
  public convenience init(within outer: EventLoop, clock: any LoopClock) {
    outer.checkThread()
    self.init(clock: clock, keys: outer.keys, failures: outer.failures)
    makeList = outer.makeList
    makeFailure = outer.makeFailure
    makeItemRunner = outer.makeItemRunner
    gracePeriod = outer.gracePeriod
    cleanupGrace = outer.cleanupGrace
    onLook = outer.onLook
    describeOrigin = outer.describeOrigin
  }

  /// Lets an inner loop run in place of this one while `body` executes, which has to turn it.
  ///
  /// Nothing of this loop goes on meanwhile: what `body` settles here is followed up afterwards. May be
  /// called from within a body or callback of this loop.
  ///
  /// - Parameters:
  ///   - inner: A loop made with `init(within:clock:)` of this one.
  ///   - body: What is done meanwhile.
  /// - Returns: What `body` returns.
  public func standStill<Result>(for inner: EventLoop, _ body: () throws -> Result) rethrows
    -> Result
  {
    checkThread()
    guard inner.keys === keys else { misuse("a loop was run within one that it wasn't made for") }
    inner.eventSinks = eventSinks
    inner.runMonitors = runMonitors
    // No handle of an execution or task of one loop is ever valid on the other.
    inner.lastTaskID = max(lastTaskID, inner.lastTaskID)
    inner.generation = max(generation, inner.generation) + Self.generationGap
    let wasStandingStill = isStandingStill
    isStandingStill = true
    defer {
      isStandingStill = wasStandingStill
      lastTaskID = max(lastTaskID, inner.lastTaskID)
      let begun = generation
      generation = max(generation, inner.generation)
      // What the inner loop has executed doesn't count here.
      turnEnd &+= generation &- begun
      stamp = 0
    }
    return try body()
  }

  /// More executions than the outer loop begins or ends meanwhile.
  private static var generationGap: UInt64 { 1 << 32 }
}
