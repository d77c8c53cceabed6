/// Something that executes: a strand or a group. The loop keeps those that can go on in a stack, so
/// that no depth of nesting needs recursion.
class Work: LoopJob {
  let loop: EventLoop

  init(loop: EventLoop) {
    self.loop = loop
  }

  /// Goes on as far as it can without waiting, or pushes what has to be done first.
  func proceed() {}

  func run() { loop.drive(self) }
}

/// A body that holds what executes in it, and lets go of it when its loop is shut down.
protocol AbandonableBody: AnyObject {
  func abandon()
}

extension EventLoop {
  /// How far `generation` may come before other jobs of the loop run: 1,000 ops of Swift begin and end.
  private static var turnLength: UInt64 { 2000 }

  /// Executes `work` and all that it pushes, until that waits or has used up its turn.
  func drive(_ work: Work) {
    checkThread()
    if isShutDown { return }
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
  }

  @inline(__always)
  func renewTurn() { turnEnd = generation &+ Self.turnLength }

  /// Whether what executes without waiting has used up its turn: then a work that could continue
  /// enqueues itself.
  @inline(__always)
  var isTurnOver: Bool { generation >= turnEnd }

  /// Takes apart what pending runs hold, member by member, so that no depth of nesting needs
  /// recursion to be released.
  func abandonRuns() {
    let held = continuations.values
    continuations = [:]
    for continuation in held { continuation.abandonContinuation() }
    for run in pending.values { (run.op.body as? any AbandonableBody)?.abandon() }
    var open = pending.values.compactMap { $0.abandon() }
    pending = [:]
    while let strand = open.popLast() { open.append(contentsOf: strand.abandon()) }
  }

  /// Has `work` go on before anything that was pushed earlier.
  func push(_ work: Work) {
    works.append(work)
  }

  /// The time of the finish that has just been logged, else a new clock read.
  @inline(__always)
  func takeStamp() -> Int64 {
    stamp != 0 ? stamp : now()
  }

  @inline(__always)
  func nextGeneration() -> UInt64 {
    generation &+= 1
    return generation
  }

  /// Why a function that checks what an op declares is to stop; nil when nothing stops it, or none does.
  package var checkStopError: FlowError? {
    guard let strand = checking?.takeUnretainedValue() else { return nil }
    return strand.codeStop ?? strand.starterStop
  }

  /// The context of a live execution; nil when that execution has settled.
  public func context(slot: UInt32, generation: UInt64) -> OpContext? {
    unmanagedContext(slot: slot, generation: generation)?.takeUnretainedValue()
  }

  /// The same without a retain, for a use that can't end the op.
  public func unmanagedContext(slot: UInt32, generation: UInt64) -> Unmanaged<OpContext>? {
    guard slot < contexts.count, let context = contexts[Int(slot)] else { return nil }
    // Safe: a context in this list is alive, and nothing here can release it.
    let isLive = context._withUnsafeGuaranteedRef { $0.generation == generation && $0.isOpen }
    return isLive ? context : nil
  }

  /// How many contexts are kept for later use.
  private static var contextPoolLimit: Int { 1024 }

  func takeContext() -> OpContext {
    if let context = freeContexts.popLast() { return context }
    let slot = freeSlots.popLast() ?? UInt32(truncatingIfNeeded: contexts.count)
    if slot == contexts.count { contexts.append(nil) }
    return makeContext(slot)
  }

  /// A new context in the slot of one that has to be let go.
  func makeContext(_ slot: UInt32) -> OpContext {
    let context = OpContext(slot: slot)
    // Unretained: see `contexts`.
    contexts[Int(slot)] = Unmanaged.passUnretained(context)
    return context
  }

  /// Takes back a context that nobody else holds.
  func recycle(_ context: OpContext) {
    if freeContexts.count < Self.contextPoolLimit {
      freeContexts.append(context)
    } else {
      dropSlot(of: context)
    }
  }

  func dropSlot(of context: OpContext) {
    contexts[Int(context.slot)] = nil
    freeSlots.append(context.slot)
  }
}
