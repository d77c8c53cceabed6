/// A row of a `ProgressTree`: an execution in progress, or a step that has ended. Texts have no secrets.
package struct ProgressRow: Sendable, Equatable {
  /// What a row is about.
  package enum Kind: Sendable, Equatable {
    /// A flow, or a run of one.
    case flow
    /// A group; `done` of `total` items have ended by themselves.
    case group
    /// An op, a machine, or a run of one.
    case op
    /// A step of a flow that has ended.
    case endedStep
    /// The undo of an op; `name` is that of the op.
    case undo
    /// An undo that has ended.
    case endedUndo
  }

  /// What the row is about.
  package var kind: Kind
  /// How many of the rows above enclose it.
  package var depth: Int
  /// The name, `UploadOp`; of an item `UploadOp #3 cat.png`. Of flows that only execute one another, the
  /// names of all: `publish/upload`.
  package var name: ByteString
  /// Seconds from its start to now; of a step that has ended, to its end.
  package var seconds: Double
  /// Of a group, the items that have ended by themselves; of a flow, such steps; of an op, what it has
  /// reported with `ctx:progress`.
  package var done: Double?
  /// What `done` reaches at the end; nil if that isn't known.
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
