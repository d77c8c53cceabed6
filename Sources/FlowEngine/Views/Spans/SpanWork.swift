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
