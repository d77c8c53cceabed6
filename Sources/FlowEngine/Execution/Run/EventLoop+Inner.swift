/// Loops within loops: a part of a program runs to its end on a clock of its own while the rest
/// pauses.
extension EventLoop {
  /// A loop that runs within calls of another one, on the same thread; see `standStill`.
  ///
  /// It shares the names of keys and the list of unobserved failures, makes values as the outer
  /// loop does, and notifies the same sinks and monitors. Runs, tasks, timers and programs are its
  /// own.
  ///
  /// - Parameters:
  ///   - outer: The loop that pauses meanwhile.
  ///   - clock: The source of its time.
  package convenience init(within outer: EventLoop, clock: any TimeSource) {
    outer.checkThread()
    self.init(clock: clock, keys: outer.keys, failures: outer.registry.failures)
    let (engine, outer) = (engine, outer.engine)
    engine.makeList = outer.makeList
    engine.makeFailure = outer.makeFailure
    engine.makeItemRunner = outer.makeItemRunner
    engine.gracePeriod = outer.gracePeriod
    engine.cleanupGrace = outer.cleanupGrace
    engine.onLook = outer.onLook
    engine.describeOrigin = outer.describeOrigin
  }

  /// Lets an inner loop run instead of this one while `body` executes, which has to turn it.
  ///
  /// Nothing of this loop runs meanwhile: the followers of a task that `body` settles here are
  /// called afterwards. May be called from within a body or callback of this loop.
  ///
  /// - Parameters:
  ///   - inner: A loop made with `init(within:clock:)` of this one.
  ///   - body: The code to execute meanwhile.
  /// - Returns: What `body` returns.
  package func standStill<Result>(for inner: EventLoop, _ body: () throws -> Result) rethrows
    -> Result
  {
    checkThread()
    guard inner.keys === keys else { misuse("a loop was run within one that it wasn't made for") }
    inner.memoryMeter = memoryMeter
    let (outer, inner) = (engine, inner.engine)
    inner.eventSinks = outer.eventSinks
    inner.runMonitors = outer.runMonitors
    inner.memory = outer.memory
    // No handle of an execution or task of one loop is ever valid on the other.
    inner.lastTaskID = max(outer.lastTaskID, inner.lastTaskID)
    inner.generation = max(outer.generation, inner.generation) + Engine.generationGap
    let wasStandingStill = outer.isStandingStill
    outer.isStandingStill = true
    defer {
      outer.isStandingStill = wasStandingStill
      outer.lastTaskID = max(outer.lastTaskID, inner.lastTaskID)
      let begun = outer.generation
      outer.generation = max(outer.generation, inner.generation)
      // Executions of the inner loop don't count here.
      outer.turnEnd &+= outer.generation &- begun
      outer.stamp = 0
    }
    return try body()
  }
}

extension Engine {
  /// More than the number of executions that the outer loop starts or ends meanwhile.
  fileprivate static var generationGap: UInt64 { 1 << 32 }
}
