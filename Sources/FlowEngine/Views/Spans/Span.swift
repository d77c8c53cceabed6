/// One execution in a run, all its attempts included: an op, a nested flow, a group, an item of a group, an
/// op that another one executes, or a run that an op has started.
///
/// Times are nanoseconds since the start of the run. A span has no references: a run can have very many.
package struct Span: Sendable {
  package enum Kind: UInt8, Sendable {
    /// An op or a machine; also a run of either that an op has started.
    case op
    /// A flow.
    case flow
    /// A group: the spans of its items are its children.
    case group
  }

  package enum Outcome: UInt8, Sendable {
    case running, succeeded, failed, cancelled
    /// It wasn't executed, because a kept run has its result.
    case kept

    /// The name in views.
    package var name: ByteString {
      switch self {
      case .running: "running"
      case .succeeded: "succeeded"
      case .failed: "failed"
      case .cancelled: "cancelled"
      case .kept: "kept"
      }
    }

    /// Whether it has the results of a success.
    package var isSuccess: Bool { self == .succeeded || self == .kept }

    init(_ state: LoggedOutcome.State) {
      self =
        switch state {
        case .succeeded: .succeeded
        case .failed: .failed
        case .cancelled: .cancelled
        }
    }
  }

  /// The `id` of its events, unique in their run; 0 for a run itself.
  package let id: UInt64
  /// The index of the span that encloses it; -1 for the run itself.
  package let parent: Int32
  /// The index of its name among those of the run's spans.
  package let name: Int32
  /// The 1-based index of an item in its group; 0 for other spans.
  package let index: Int32
  /// The index of the label of an item among those of the run's spans; -1 without one.
  package let label: Int32
  package internal(set) var kind: Kind
  package internal(set) var outcome = Outcome.running
  /// The worker that executes it, counted from 1; 0 for the loop itself.
  package internal(set) var lane: UInt8
  /// The index of the log that has its events, among the runs' ids: 0 is the run's own.
  package let log: UInt32
  /// The index of its own log, when it is a run that an op has started and whose log is kept; else 0.
  var ownLog: UInt32 = 0
  /// Whether it is in the log of a run that an op has started: its id is this log's.
  package var isInChildRun: Bool { log != 0 }
  /// Whether what encloses it counts it as an item: the other spans have places of their own.
  let isItem: Bool
  /// Its place in the scope, for spans that aren't items.
  let position: UInt32
  /// When it could have started: an item, with its group; what has waited for limits, when it began to. Other spans start
  /// at once.
  package let queued: Int64
  /// The index of the line about the limits that it has waited for among the names of the run's spans; -1 if it hasn't.
  package let queuedLine: Int32
  package internal(set) var start: Int64
  /// Its end; of a running span the time of the view.
  package internal(set) var end: Int64
  /// The index of the line that says where its result comes from among the names of the run's spans; -1 if it was
  /// executed.
  package internal(set) var keptLine: Int32 = -1
  /// The index of its failure; -1 without one.
  package internal(set) var failure: Int32 = -1
  /// The index of its last retry; -1 without one.
  var lastRetry: Int32 = -1
  /// How often it was retried.
  package internal(set) var retryCount: Int32 = 0
  /// The number of its children.
  package internal(set) var childCount: Int32 = 0
  /// The latest end of a child.
  var lastChildEnd: Int64 = 0
  /// The group that is its present step; -1 for none.
  var openGroup: Int32 = -1
  /// Whether it is a group that a failure has stopped.
  var isStopped = false

  /// Whether it wasn't executed, because a kept run has its result.
  package var isKept: Bool { keptLine >= 0 && outcome.isSuccess }

  /// From the start of its first attempt to the end of its last one, in nanoseconds.
  package var duration: Int64 { end - start }
}

/// An attempt at an op or flow, in nanoseconds since the start of the run.
package struct SpanAttempt {
  /// From 1 on.
  package let number: Int
  package let start: Int64
  package let end: Int64
  package let outcome: Span.Outcome
  /// The error's message, when it has failed or was cancelled.
  package let message: ByteString?
  /// The kind of the error, when the log has it.
  package let errorKind: FlowError.Kind?
}

/// The end of an attempt that another one follows.
struct SpanRetry: Sendable {
  /// The retry before it of the same span; -1 for none.
  let previous: Int32
  let time: Int64
  /// When the delay before the next attempt ends.
  let due: Int64
  /// When the next attempt starts: later when it has to wait for a place in its group.
  var next: Int64
  /// The number of the attempt that has failed.
  let attempt: Int
  /// The error of the attempt.
  let message: ByteString
}

/// The error of a span.
struct SpanFailure: Sendable {
  let message: ByteString
  let kind: FlowError.Kind?
}

/// The undo of an op, after the end of its span. Times are nanoseconds since the start of the run.
///
/// It isn't a span itself: numbers of ops are about what the script executes for its result.
package struct SpanUndo: Sendable {
  /// The index of the span that was undone; of the op of a machine's step, which has its span in another log, the
  /// machine's.
  package let parent: Int32
  /// The name of the op as lines show it.
  package let name: ByteString
  /// Whether the span is the op's.
  package let isOfSpan: Bool
  package let start: Int64
  /// Its end; of an undo that executes the time of the view.
  package internal(set) var end: Int64
  package internal(set) var outcome = Span.Outcome.running
  /// The message of its error; nil for a success.
  package internal(set) var error: ByteString?
  /// The kind of the error.
  package internal(set) var errorKind: ByteString?
  /// The attempt at the op.
  package let attempt: Int
  /// The worker that executes it, or 0: undos are always executed on the loop.
  package var lane: UInt8 { 0 }
  /// How many entries of `RunSpans.order` come before its start.
  let place: Int

  package var duration: Int64 { end - start }
}

extension RunSpans {
  /// The path of the op that was undone.
  package func path(of undo: SpanUndo) -> ByteString {
    let path = path(of: spans[Int(undo.parent)])
    return undo.isOfSpan ? path : "\(path)/\(undo.name)"
  }

  /// The spans in which the undos were executed: the innermost one around each that ended no earlier.
  func spansAroundUndos() -> [Int32] {
    undos.map { undo in
      var index = undo.isOfSpan ? spans[Int(undo.parent)].parent : undo.parent
      while index > 0, spans[Int(index)].end < undo.end { index = spans[Int(index)].parent }
      return max(index, 0)
    }
  }
}

/// A program or request of a span. Times are nanoseconds since the start of the run.
///
/// It isn't a span itself: numbers of ops and the critical path are about what the script executes.
package struct SpanWork: Sendable {
  /// The index of the span in whose code it was started.
  package let parent: Int32
  /// The description.
  package let work: LoggedWork
  package let start: Int64
  package let end: Int64
  /// How many entries of `RunSpans.order` come before its end.
  let place: Int
}
