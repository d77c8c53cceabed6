/// Waits; everything that doesn't depend on it runs meanwhile.
///
/// ```swift
/// Flow("nap").add(SleepOp(.seconds(5))).start(on: loop)
/// ```
public final class SleepOp: Op {
  /// The description of such ops, for people.
  package static let docText = "Waits for its seconds."

  /// Makes an op that waits on the loop's clock.
  ///
  /// - Parameter duration: How long; a duration that isn't positive doesn't wait.
  public init(_ duration: Duration) {
    super.init(name: "SleepOp", doc: Self.docText, body: SleepBody(duration))
  }
}

private final class SleepBody: OpBody {
  private let duration: Duration

  init(_ duration: Duration) {
    self.duration = duration
  }

  func start(_ context: OpContext) -> CallState {
    let loop = context.loop
    context.state = loop.schedule(after: duration) { context.end() }
    return .suspended
  }

  func codeForm() -> CodeForm? {
    var writer = CodeFormWriter("SleepOp")
    writer.add(duration.inSeconds)
    return writer.form()
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? LoopTimer)?.cancel()
    context.end(error)
  }
}
