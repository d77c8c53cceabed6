@_spi(Scripting) internal import FlowLoop

/// How many executions use something at a time, and how often they begin to: a database, an API, a device.
///
/// Any number of ops, groups, flows and runs share a limit. Those that wait for it get it in the order in which they
/// came. Code that holds it doesn't take it again further inside. Confined to the thread that makes it, as ops are;
/// workers of scripts ask that thread.
///
/// ```swift
/// let database = Limit("database", maxConcurrent: 4)
/// let flow = Flow("report")
///   .addGrouped(ScaleOp(), GroupDispatcher(input: "images", limits: [database]))
///   .add(AuditOp().with(limits: [database]))
/// ```
public final class Limit {
  /// The name in lines and errors.
  package let name: ByteString
  /// How many may hold it at a time; `Int.max` for any number.
  package let maxConcurrent: Int
  /// How many may begin to hold it in a time; nil for any number.
  package let rate: RateLimit?

  /// Those that hold it, by their numbers: the lowest one has held it for the longest time.
  private var holders: [UInt64: LimitHold] = [:]
  /// Those that wait; those that were withdrawn stay in it until their turn.
  private var waiters = FIFO<LimitHold>()
  private var withdrawn = 0
  private var limiter: RateLimiter?
  /// Set while only `rate` keeps the first one waiting.
  private var timer: LoopTimer?
  private var last: UInt64 = 0
  /// The place among all limits: who needs several takes them in this order, so that two don't wait for each other.
  fileprivate let number: UInt64

  // Only for numbers that differ.
  private static let numbers = Locked<UInt64>(0)

  /// Makes a limit.
  ///
  /// Ends the process with a sentence when `maxConcurrent` is less than 1.
  ///
  /// - Parameters:
  ///   - name: The name in lines and errors.
  ///   - maxConcurrent: How many may hold it at a time.
  ///   - rate: How many may begin to hold it in a time.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  public init(
    _ name: some FlowText, maxConcurrent: Int = .max, rate: RateLimit? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) {
    if maxConcurrent < 1 {
      misuse("a Limit lets at least 1 hold it, not \(maxConcurrent)", file: file, line: line)
    }
    self.name = name.byteString
    self.maxConcurrent = maxConcurrent
    self.rate = rate
    limiter = rate.map { RateLimiter($0) }
    number = Self.numbers.withLock {
      $0 += 1
      return $0
    }
  }

  deinit { timer?.cancel() }

  /// How many hold it now.
  public var running: Int { holders.count }

  /// How many wait for it now.
  public var waiting: Int { waiters.count - withdrawn }

  /// The name of what has held it for the longest time; nil if it is free.
  fileprivate var holder: ByteString? {
    holders.min { $0.key < $1.key }?.value.title()
  }

  /// Lets one hold it, or wait; returns whether it holds it.
  fileprivate func take(_ hold: LimitHold) -> Bool {
    let time = hold.loop.now()
    guard waiting == 0, holders.count < maxConcurrent, limiter?.available(at: time) != 0 else {
      waiters.append(hold)
      grantNext()
      return false
    }
    add(hold, at: time)
    return true
  }

  private func add(_ hold: LimitHold, at time: Int64) {
    limiter?.start(at: time)
    last += 1
    hold.numbers.append(last)
    holders[last] = hold
  }

  fileprivate func release(_ number: UInt64) {
    holders[number] = nil
    grantNext()
  }

  /// One doesn't wait any more.
  fileprivate func withdraw() {
    withdrawn += 1
    if withdrawn > 64, withdrawn > waiters.count / 2 || withdrawn == waiters.count {
      waiters.removeAll { !$0.isWaiting }
      withdrawn = 0
    }
    grantNext()
  }

  /// Lets those that have waited for the longest time hold it, as many as it allows.
  private func grantNext() {
    timer?.cancel()
    timer = nil
    while let first = waiters.first, holders.count < maxConcurrent {
      if !first.isWaiting {
        waiters.removeFirst(1)
        withdrawn -= 1
        continue
      }
      let time = first.loop.now()
      if let start = limiter?.nextStart(at: time), start > time {
        timer = first.loop.schedule(at: start) { [weak self] in self?.grantNext() }
        return
      }
      waiters.removeFirst(1)
      add(first, at: time)
      first.granted()
    }
  }
}

/// The limits that one op, or one call of code, holds or waits for.
///
/// It is the owner of the tasks that such code starts, so that they don't take these limits again.
package final class LimitHold: TaskOwner {
  private let limits: ContiguousArray<Limit>
  /// Those that it holds elsewhere, as a worker does.
  private let further: [Limit]
  /// Called when it waits no more, and has given back what it held.
  package var onDrop: (() -> Void)?
  let loop: FlowEventLoop
  /// The name of what holds them.
  let title: () -> ByteString
  /// Its numbers among the holders of the limits that it holds: of the first ones.
  fileprivate var numbers: ContiguousArray<UInt64> = []
  /// Whether it waits for the limit after those.
  package private(set) var isWaiting = false
  private var then: (() -> Void)?
  /// The limits for which it has waited since the last `take`, and since when.
  private var awaited: [ByteString] = []
  private var began: Int64 = 0

  // Of the tasks of code:
  let enclosingTasks: OwnedTasks?
  /// The tasks of the code that holds the limits.
  package private(set) lazy var tasks = OwnedTasks(of: self)

  /// Makes what takes limits.
  ///
  /// - Parameters:
  ///   - limits: The limits, in any order; none twice.
  ///   - further: Limits that it holds elsewhere.
  ///   - loop: The loop of what holds them.
  ///   - enclosing: The tasks of the op or run whose code holds them; nil for an op itself.
  ///   - title: The name for errors of others.
  package init(
    _ limits: [Limit], besides further: [Limit] = [], on loop: FlowEventLoop,
    within enclosing: OwnedTasks? = nil,
    title: @escaping () -> ByteString
  ) {
    self.limits = ContiguousArray(limits.sorted { $0.number < $1.number })
    self.further = further
    self.loop = loop
    enclosingTasks = enclosing
    self.title = title
  }

  func contains(_ limit: Limit) -> Bool { (limits + further).contains { $0 === limit } }

  /// Takes the limits, one after another.
  ///
  /// - Parameter then: Called when it holds all, if that isn't at once; not from within this call.
  /// - Returns: Whether it holds all.
  package func take(_ then: @escaping () -> Void) -> Bool {
    awaited = []
    if takeRest() { return true }
    self.then = then
    return false
  }

  private func takeRest() -> Bool {
    while numbers.count < limits.count {
      let limit = limits[numbers.count]
      isWaiting = true
      if !limit.take(self) {
        // It may have got it while it was added.
        if !isWaiting { continue }
        if awaited.isEmpty { began = loop.now() }
        awaited.append(limit.name)
        return false
      }
      isWaiting = false
    }
    return true
  }

  /// Called by the limit for which it waits.
  fileprivate func granted() {
    isWaiting = false
    guard then != nil, takeRest() else { return }
    then.take()?()
  }

  /// Gives back what it holds; it may take the limits again.
  package func release() {
    let held = numbers
    numbers = []
    for (limit, number) in zip(limits, held) { limit.release(number) }
  }

  /// Waits no more, and gives back what it holds.
  package func drop() {
    then = nil
    if isWaiting {
      isWaiting = false
      limits[numbers.count].withdraw()
    }
    release()
    onDrop.take()?()
  }

  /// Whether it holds all.
  package var isComplete: Bool { numbers.count == limits.count }

  /// The names of the limits for which it has waited, and how long; nil if it hasn't.
  package var wait: (names: ByteString, time: Int64)? {
    awaited.isEmpty ? nil : (awaited.joined(separator: ", "), loop.now() &- began)
  }

  /// The name of the limit for which it waits.
  var awaitedName: ByteString? { isWaiting ? limits[numbers.count].name : nil }

  /// The error of a wait that nothing can end.
  package func stalled(_ name: ByteString) -> FlowError {
    guard isWaiting else { return .stalled(op: name) }
    let limit = limits[numbers.count]
    let holder: ByteString = limit.holder.map { ", which [\($0)] holds" } ?? ""
    return FlowError(
      .stalled, "stalled: [\(name)] waits for limit '\(limit.name)'\(holder)", op: name)
  }

  // MARK: Of tasks

  var isCode: Bool { true }
  var taskDeadline: Int64 { .max }
  var taskStopError: FlowError? { nil }
  var workPlace: WorkPlace? { enclosingTasks?.workPlace }
  func expireTask() -> FlowError? { enclosingTasks?.expire() }
  func failOwner(_ error: FlowError) { enclosingTasks?.failOwner(error) }
  func holds(_ limit: Limit) -> Bool { contains(limit) }
}
