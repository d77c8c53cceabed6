/// The undo of an op, after the end of its span. Times are nanoseconds since the start of the run.
package struct SpanUndo: Sendable {
  /// The index of the span that was undone.
  package let parent: Int32
  package let start: Int64
  package let end: Int64
  /// The text after `Undo: ` in the summary.
  package let message: ByteString
}
