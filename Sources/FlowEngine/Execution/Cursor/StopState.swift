/// A limit of time, and what ends at it.
struct Deadline: Equatable {
  enum Source: Equatable {
    /// The code that has started the run.
    case starter
    /// The execution that encloses this one.
    case enclosing
    /// The code of a task that executes the op.
    case code
    /// The attempt at the flow or op of a level.
    case attempt(level: Int)
    /// The grace of the cleanups, final steps or callbacks of a level.
    case grace(level: Int)
  }

  let source: Source
  /// In nanoseconds of the loop's clock; `.max` for never.
  var time: Int64

  /// The earlier one; of two at the same time, the first.
  static func earlier(_ first: Deadline, _ second: Deadline) -> Deadline {
    second.time < first.time ? second : first
  }
}

/// Shields inner code from stops of a level and of enclosing levels: the cleanups of an op, the
/// final steps of a flow.
struct Shield {
  let level: Int
  /// The stop that is held until the shield ends.
  fileprivate(set) var held: Stop?
  /// The end of the grace; nil until the enclosing level has been stopped.
  fileprivate(set) var graceEnd: Int64?
  /// Whether the grace is over: waits within are cut off.
  fileprivate(set) var isOver = false
  /// The timer that the execution has set to the end of the grace.
  var timer: LoopTimer?
}

/// The state by which the code of an execution stops: a stop, the shields that hold stops back, and deadlines.
///
/// A transition changes only this value and returns the action to perform, as those of `FlowCursor`.
struct StopState {
  enum Action: Equatable {
    case none
    /// Stop the thing that the execution waits for.
    case stopWait
    /// Begin the grace of a shield.
    case beginGrace(shield: Int)
  }

  enum GraceAction: Equatable {
    case none
    /// Set a timer to the end of the grace.
    case setTimer(Int64)
    /// Cut off the code within the shield.
    case cut
  }

  /// The stop of the present work.
  private(set) var stop: Stop?
  /// Levels that stops don't reach into now, the innermost last.
  private(set) var shields: ContiguousArray<Shield> = []
  /// The deadlines of the execution's own levels, the outermost first; those that change are among the last.
  private var deadlines: ContiguousArray<Deadline> = []

  // MARK: Stops

  /// Takes a stop, unless a stop of an enclosing level, or an earlier one, is there.
  mutating func request(_ new: Stop) -> Action {
    // The outermost shield that holds the stop: an inner one may hold a stop of its own meanwhile.
    if let index = shields.firstIndex(where: { new.level <= $0.level }) {
      // The stop is delivered when the shielded code is done.
      if let held = shields[index].held, held.level <= new.level { return .none }
      shields[index].held = new
      return .beginGrace(shield: index)
    }
    if let stop, stop.level <= new.level { return .none }
    stop = new
    return .stopWait
  }

  /// Replaces the stop by one of the same level with another error.
  mutating func replaceStop(_ new: Stop) { stop = new }

  /// Removes a stop that reaches `level` and no enclosing one.
  mutating func endStop(of level: Int) {
    if let stop, stop.level >= level { self.stop = nil }
  }

  mutating func clearStop() { stop = nil }

  // MARK: Shields

  /// Shields the code that follows from stops of `level` and of enclosing levels.
  ///
  /// - Parameters:
  ///   - level: The level whose cleanups, final steps or callbacks follow.
  ///   - isStopped: Whether a stop has ended the level before.
  ///   - limit: When busy code within is cut off if the grace hasn't begun before.
  /// - Returns: Whether to begin the grace: a stop is there, or has been there before.
  mutating func beginShield(_ level: Int, isStopped: Bool, limit: Int64) -> Bool {
    var shield = Shield(level: level)
    if let stop, stop.level <= level {
      shield.held = stop
      self.stop = nil
    }
    shields.append(shield)
    deadlines.append(Deadline(source: .grace(level: level), time: limit))
    return shield.held != nil || isStopped
  }

  /// Ends the innermost shield and returns the stop that it has held, and its timer.
  mutating func endShield() -> (held: Stop?, timer: LoopTimer?) {
    guard let shield = shields.popLast() else { return (nil, nil) }
    removeDeadline(.grace(level: shield.level))
    return (shield.held, shield.timer)
  }

  /// Begins the grace of a shield, which ends at `end`; the first call counts.
  mutating func beginGrace(_ index: Int, end: Int64, now: Int64) -> GraceAction {
    guard shields[index].graceEnd == nil, !shields[index].isOver else { return .none }
    shields[index].graceEnd = end
    setDeadline(.grace(level: shields[index].level), end)
    if end == .max { return .none }
    return end <= now ? .cut : .setTimer(end)
  }

  /// The grace of a shield is over. Cleanups that haven't begun are called nevertheless: each is cut
  /// off where it waits, and all at `limit`.
  mutating func endGrace(_ index: Int, limit: Int64) -> LoopTimer? {
    shields[index].isOver = true
    setDeadline(.grace(level: shields[index].level), limit)
    return shields[index].timer.take()
  }

  mutating func setTimer(_ timer: LoopTimer, of index: Int) { shields[index].timer = timer }

  // MARK: Deadlines

  /// Whether it has deadlines; each shield has one.
  var hasDeadlines: Bool {
    @inline(__always) get { !deadlines.isEmpty }
  }

  /// Sets the deadline of a level's attempt or grace.
  mutating func setDeadline(_ source: Deadline.Source, _ time: Int64) {
    if let index = deadlines.lastIndex(where: { $0.source == source }) {
      deadlines[index].time = time
    } else {
      deadlines.append(Deadline(source: source, time: time))
    }
  }

  mutating func removeDeadline(_ source: Deadline.Source) {
    if let index = deadlines.lastIndex(where: { $0.source == source }) {
      deadlines.remove(at: index)
    }
  }

  /// The deadline of a level's attempt or grace; `.max` when there is none.
  func deadline(of source: Deadline.Source) -> Int64 {
    deadlines.last { $0.source == source }?.time ?? .max
  }

  /// The earliest deadline of the code within the innermost shield.
  ///
  /// - Parameter enclosing: The deadline that counts where no shield is.
  /// - Returns: The earliest; of several at the same time, the outermost.
  func earliest(enclosing: Deadline) -> Deadline {
    earliest(within: shields.count - 1, enclosing: enclosing)
  }

  /// The earliest deadline of the code that encloses a shield.
  func earliest(around shield: Int, enclosing: Deadline) -> Deadline {
    earliest(within: shield - 1, enclosing: enclosing)
  }

  /// The earliest deadline between a shield (-1: outside of all) and the next inner one.
  private func earliest(within shield: Int, enclosing: Deadline) -> Deadline {
    var earliest = enclosing
    var first = deadlines.startIndex
    if shield >= 0, let own = place(of: shield) {
      earliest = deadlines[own]
      first = own + 1
    }
    var end = deadlines.endIndex
    if shield + 1 < shields.count, let next = place(of: shield + 1) { end = next }
    for deadline in deadlines[first..<max(first, end)] {
      earliest = .earlier(earliest, deadline)
    }
    return earliest
  }

  private func place(of shield: Int) -> Int? {
    let source = Deadline.Source.grace(level: shields[shield].level)
    return deadlines.lastIndex { $0.source == source }
  }
}

/// A stop of an execution, and the level that it reaches.
///
/// Levels count from the outside: frame 0 is level 0, the op that executes within all frames is level
/// `frames.count`, and `everything` is beyond all of them.
struct Stop {
  static let everything = -1

  /// The level that ends because of the stop.
  let level: Int
  /// The error that this level ends with.
  let error: FlowError
  /// The error that inner levels end with.
  let inner: FlowError

  /// A stop of everything that an execution does.
  static func everything(_ error: FlowError) -> Stop {
    Stop(level: everything, error: error, inner: error)
  }

  /// A stop of one level, which inner levels show as their reason.
  static func one(_ level: Int, _ error: FlowError) -> Stop {
    Stop(level: level, error: error, inner: error.asReason)
  }

  /// The error that code at `level` ends with; nil when the stop is of an inner level.
  func error(at level: Int) -> FlowError? {
    level < self.level ? nil : level == self.level ? error : inner
  }
}
