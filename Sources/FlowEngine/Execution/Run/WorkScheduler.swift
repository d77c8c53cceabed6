internal import FlowLoop

/// An execution or a group. The scheduler keeps those that can continue in a stack, so that no depth of
/// nesting needs recursion.
class Work: LoopJob {
  /// The scheduler that continues it. Retained, because each use of an unretained object costs a retain.
  let scheduler: WorkScheduler

  init(scheduler: WorkScheduler) { self.scheduler = scheduler }

  /// Continues as far as it can without waiting, or pushes the work that has to be done first.
  func proceed() {}

  func run() { scheduler.drive(self) }
}

/// Continues works, the last one pushed first, and lets other jobs of the loop run between them.
///
/// Confined to the loop's thread. The engine is its only subclass.
class WorkScheduler: TaskRegistry {
  // Unchecked exclusivity: see HotPath.swift.

  /// Works that can continue, the next one last.
  @exclusivity(unchecked) final var works: ContiguousArray<Work> = []
  /// Called once, when no op is executing any more.
  @exclusivity(unchecked) final var afterExecuting: (() -> Void)?
  /// Called now and then while ops execute without waiting. It must not wait.
  final var onLook: (() -> Void)?
  /// How many calls of `drive` are running.
  @exclusivity(unchecked) private final var driveDepth = 0
  /// When work that executes without waiting has to call `look`; never with a virtual clock, whose
  /// time doesn't advance meanwhile.
  @exclusivity(unchecked) final var nextLook: Int64 = 0
  /// Counts the starts and ends of executions: its values identify an execution on this loop.
  @exclusivity(unchecked) final var generation: UInt64 = 0
  /// The generation at which work that executes without waiting lets other jobs run: see `drive`.
  @exclusivity(unchecked) final var turnEnd: UInt64 = 0

  override func attach(to loop: FlowEventLoop) {
    super.attach(to: loop)
    if loop.timeSource.isVirtual { nextLook = .max }
  }

  override var isExecuting: Bool { driveDepth > 0 }

  override func loopIsShutDown() {
    works = []
    super.loopIsShutDown()
  }

  /// Called by code that executes without waiting, at least every millisecond: fires due time
  /// limits, and has pending signals handled.
  final func look(at time: Int64) {
    nextLook = time.later(by: 1_000_000)
    loop.runLimits(dueAt: time)
    onLook?()
    hasLooked(at: time)
  }

  /// Called at the end of `look`.
  func hasLooked(at time: Int64) {}

  /// The time of an event between two ops. The next op must not start before it, so only that op
  /// may share this reading of the clock.
  final func stampedNow() -> Int64 {
    stamp = now()
    return stamp
  }

  /// How far `generation` may advance before other jobs of the loop run: 1,000 ops of Swift start
  /// and end.
  private static var turnLength: UInt64 { 2000 }

  /// Executes `work` and everything that it pushes, until it waits or has used up its turn.
  final func drive(_ work: Work) {
    let isOver = unretained(loop) { loop in
      loop.checkThread()
      return loop.isShutDown
    }
    if isOver { return }
    let base = works.count
    let outerEnd = turnEnd
    turnEnd = generation &+ Self.turnLength
    stamp = 0
    driveDepth += 1
    works.append(work)
    while works.count > base, let next = works.popLast() { next.proceed() }
    driveDepth -= 1
    stamp = 0
    turnEnd = outerEnd
    if driveDepth == 0, let done = afterExecuting.take() { done() }
  }

  @inline(__always)
  final func renewTurn() { turnEnd = generation &+ Self.turnLength }

  /// Lets other jobs run before the running work continues.
  final func endTurn() { turnEnd = generation }

  /// Whether the running work has used up its turn: a work that could continue then enqueues
  /// itself.
  @inline(__always)
  final var isTurnOver: Bool { generation >= turnEnd }

  /// Has `work` continue before everything that was pushed earlier.
  final func push(_ work: Work) {
    works.append(work)
  }

  /// The time of the latest finish in the log if that has just been logged, else a new clock
  /// reading.
  @inline(__always)
  final func takeStamp() -> Int64 {
    stamp != 0 ? stamp : now()
  }

  @inline(__always)
  final func nextGeneration() -> UInt64 {
    generation &+= 1
    return generation
  }
}
