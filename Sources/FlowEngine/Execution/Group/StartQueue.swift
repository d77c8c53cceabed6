@_spi(Scripting) internal import FlowLoop

/// Decides which item of a group starts next, and when, where that depends on more than free slots:
/// members whose next attempt is due come before new items, and a limit of starts per time applies
/// to both.
///
/// A transition changes only the queue. A group without either has none.
struct StartQueue {
  /// The next step of a group with a free slot.
  enum Action: Equatable {
    /// Start a member whose next attempt is due, or, without one, a new item.
    case start
    /// Nothing before this time.
    case wait(until: Int64)
    /// Nothing: there is no item to start.
    case none
  }

  private var limiter: RateLimiter?
  /// The members whose next attempt is due; their group retains them.
  private var due = FIFO<Unmanaged<Execution>>()
  /// Has the group continue when the limit allows a start.
  private(set) var timer: LoopTimer?

  init(_ rate: RateLimit?) {
    limiter = rate.map { RateLimiter($0) }
  }

  /// Whether there is a limit of starts.
  var isLimited: Bool { limiter != nil }

  /// Whether an attempt is due.
  var hasDue: Bool { !due.isEmpty }

  /// How many items may start at `time`.
  mutating func available(at time: Int64) -> Int { limiter?.available(at: time) ?? .max }

  /// The action that follows at `time`, when a slot is free; `hasNew` is whether new items remain.
  mutating func nextAction(at time: Int64, hasNew: Bool) -> Action {
    guard hasDue || hasNew else { return .none }
    guard let start = limiter?.nextStart(at: time), start > time else { return .start }
    return .wait(until: start)
  }

  /// Records that items start.
  mutating func starts(_ count: Int = 1, at time: Int64) { limiter?.start(count, at: time) }

  /// Takes back the start of an item that wasn't executed, because a kept run knows its end.
  mutating func cancelStart() { limiter?.cancelStart() }

  /// Adds a member whose next attempt is due.
  mutating func add(_ member: Execution) { due.append(.passUnretained(member)) }

  /// The member whose next attempt has been due for the longest time, which leaves the queue.
  mutating func popDue() -> Unmanaged<Execution>? { due.popFirst() }

  /// Removes a member that is stopped.
  mutating func remove(_ member: Execution) {
    guard hasDue else { return }
    due.removeAll { $0.toOpaque() == Unmanaged.passUnretained(member).toOpaque() }
  }

  /// Removes all members, because all are stopped.
  mutating func removeAll() { due.removeAll() }

  /// Replaces the timer.
  mutating func setTimer(_ timer: LoopTimer?) {
    self.timer?.cancel()
    self.timer = timer
  }
}
