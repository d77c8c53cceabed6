/// Waits; everything that doesn't depend on it runs meanwhile.
public final class SleepOp: Op {
  /// Makes an op that waits on the loop's clock.
  ///
  /// - Parameter seconds: How long; 0 and negative numbers don't wait.
  public init(_ seconds: Double) {
    super.init(name: "SleepOp", body: SleepBody(seconds))
  }
}

private final class SleepBody: OpBody {
  private let seconds: Double

  init(_ seconds: Double) {
    self.seconds = seconds
  }

  func start(_ context: OpContext) -> CallState {
    let loop = context.loop
    context.state = loop.schedule(at: loop.deadline(after: seconds)) { context.end() }
    return .suspended
  }

  func codeForm() -> CodeForm? {
    var writer = CodeFormWriter("SleepOp")
    writer.add(seconds)
    return writer.form()
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? LoopTimer)?.cancel()
    context.end(error)
  }
}
