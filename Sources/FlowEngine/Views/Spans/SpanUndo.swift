/// The undo of an op, after the end of its span. Times are nanoseconds since the start of the run.
///
/// It isn't a span itself: numbers of ops are about what the script executes for its result.
package struct SpanUndo: Sendable {
  /// The index of the span that was undone; of the op of a machine's step, which has its span in another log, that
  /// of the machine.
  package let parent: Int32
  /// The name of the op as lines show it.
  package let name: ByteString
  /// Whether the span is that of the op.
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
