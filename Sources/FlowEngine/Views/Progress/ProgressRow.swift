internal import FlowSystem

/// A row of a `ProgressTree`: an execution in progress, or a step that has ended. Texts have no secrets.
package struct ProgressRow: Sendable, Equatable {
  /// The subject of a row.
  package enum Kind: Sendable, Equatable {
    /// A flow, or a run of one.
    case flow
    /// A group; `done` of `total` items have ended by themselves.
    case group
    /// An op, a machine, or a run of one.
    case op
    /// A step of a flow that has ended.
    case endedStep
    /// The undo of an op; `name` is the op's.
    case undo
    /// An undo that has ended.
    case endedUndo
  }

  /// The subject of the row.
  package var kind: Kind
  /// How many of the rows above enclose it.
  package var depth: Int
  /// The name, `UploadOp`; of an item `UploadOp #3 cat.png`. Of flows that only execute one another, the
  /// names of all: `publish/upload`.
  package var name: ByteString
  /// Seconds from its start to now; of a step that has ended, to its end.
  package var seconds: Double
  /// Of a group, the items that have ended by themselves; of a flow, such steps; of an op, the number that it has
  /// reported with `ctx:progress`.
  package var done: Double?
  /// The number that `done` reaches at the end; nil if that isn't known.
  package var total: Double?
  /// How many items of a group are executing; nil for other rows.
  package var running: Int?
  /// How many items of a group, or steps, have failed.
  package var failed = 0
  /// How many items of a group weren't executed, because a kept run has their results; of a step that has ended 1
  /// or 0.
  package var kept = 0
  /// The number of the attempt, from 1 on.
  package var attempt = 1
  /// The name of the limit for which it waits before it starts; `seconds` is then since it began to wait.
  package var limit: ByteString?
  /// Seconds to the next attempt while that is awaited.
  package var retryDelay: Double?
  /// The last transition of a machine: `one -> two`.
  package var transition: ByteString?
  /// The command of the program, or the method and URL of the request, that an op is waiting for; of several the
  /// last one that has started.
  package var work: ByteString?
  /// How many further programs and requests of the op are running.
  package var furtherWorks = 0
  /// The estimated seconds for the rest; nil while an estimate would be a mere guess. It decreases
  /// steadily, and jumps only when it has been badly wrong.
  package var remaining: Double?

  /// The part that is done, from 0 to 1; nil if that isn't known.
  package var share: Double? {
    share(without: 0)
  }

  /// The part of what is executed that is done.
  var executedShare: Double? { share(without: Double(kept)) }

  private func share(without kept: Double) -> Double? {
    guard let done, let total, total > kept, total.isFinite, done.isFinite else { return nil }
    return min(max((done - kept) / (total - kept), 0), 1)
  }
}

/// The rows of a `ProgressTree`.
package struct ProgressRows: Sendable, Equatable {
  /// The rows: each comes after the one that encloses it.
  package var rows: [ProgressRow] = []
  /// How many further executions have no row. Items that wait for nothing within them don't count: the
  /// row of their group has their number.
  package var hidden = 0
}

/// Something that a `ProgressTree` reports once. Texts have no secrets.
package enum ProgressNotice: Sendable, Equatable {
  /// An execution has failed.
  case failure(Failure)
  /// A group has ended.
  case groupEnd(GroupEnd)

  /// An execution has failed. An execution that only passes on the failure of another one within it isn't
  /// reported.
  package struct Failure: Sendable, Equatable {
    /// Its place: `publish/UploadOp #3`.
    package var path: ByteString
    /// The error's message.
    package var message: ByteString
    /// The number of its attempts.
    package var attempts: Int
    /// Whether further failures of the same group with this message aren't reported.
    package var isLastOfItsKind: Bool
    /// Whether its undo has failed, and not the execution itself.
    package var isOfUndo = false
  }

  /// A group that had a row has ended. Groups within items of other groups aren't reported.
  package struct GroupEnd: Sendable, Equatable {
    /// Its place: `publish/UploadOp`.
    package var path: ByteString
    /// The items that have ended by themselves, and all. The others were stopped, or have not started.
    package var done, total: Int
    /// The items that have failed.
    package var failed: Int
    /// The items that weren't executed, because a kept run has their results.
    package var kept = 0
    /// Whether a failure or a cancel has stopped it.
    package var isStopped: Bool
    /// How long it took.
    package var seconds: Double
  }
}

/// The estimate of the time that the rest of something takes.
///
/// The rate is an average of what was done, in which the last third of the time weighs most. The result
/// follows the estimate smoothly and never increases, unless it turns out to be wrong by a factor of two.
struct RemainingTime {
  /// The part that was done, and the seconds since the start, when the rate was last computed.
  private var share = 0.0
  private var time = 0.0
  /// The part that was done at the last change, its time, and the greatest increase.
  private var last: (share: Double, time: Double, step: Double) = (0, 0, 0)
  /// The part that is done in a second.
  private var rate = 0.0
  /// The last result and its time.
  private var shown: (left: Double, time: Double)?

  /// For shorter times an estimate would be a mere guess.
  private static let shortest = 1.0
  /// How slowly the result follows the estimate at most, in seconds.
  private static let smoothing = 3.0

  /// Updates the estimate.
  ///
  /// - Parameters:
  ///   - share: The part that is done, from 0 to 1.
  ///   - seconds: The time since the start.
  /// - Returns: The seconds that are left; nil while an estimate would be a mere guess.
  mutating func update(_ share: Double, at seconds: Double) -> Double? {
    // An op may report less than before, and another total.
    if share < self.share { self = RemainingTime() }
    if share > last.share { last = (share, seconds, max(share - last.share, last.step * 0.5)) }
    let rate = measure(share, at: seconds)
    guard rate > 0, share < 1, seconds >= Self.shortest else {
      shown = nil
      return nil
    }
    // Work since the last change counts, but no more than such a change.
    let since = min(rate * (seconds - last.time), last.step * 0.9)
    let estimate = max(0, 1 - share - since) / rate
    let left = follow(estimate, at: seconds)
    shown = (left, seconds)
    return left
  }

  /// Updates the average and returns it, or less if nothing has changed for too long.
  private mutating func measure(_ share: Double, at seconds: Double) -> Double {
    let passed = seconds - time
    guard passed >= 0.5 else { return rate }
    let weight = 1 - exp(-passed / max(5, seconds / 3))
    if share > self.share {
      let sample = (share - self.share) / passed
      rate = rate == 0 ? sample : rate + (sample - rate) * weight
      (self.share, time) = (share, seconds)
      return rate
    }
    let most = last.step / passed
    return most < rate ? rate + (most - rate) * weight : rate
  }

  private func follow(_ estimate: Double, at seconds: Double) -> Double {
    guard let shown else { return estimate }
    let passed = seconds - shown.time
    let expected = max(0, shown.left - passed)
    if estimate > expected * 2 + 10 { return estimate }
    let smoothing = min(max(expected / 4, 0.2), Self.smoothing)
    let followed = expected + (estimate - expected) * (1 - exp(-passed / smoothing))
    return max(0, min(followed, shown.left))
  }
}
