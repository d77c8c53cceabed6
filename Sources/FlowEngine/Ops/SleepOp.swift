/// Waits; what doesn't depend on it goes on meanwhile.
public final class SleepOp: Op {
  /// An op that waits on the loop's clock.
  ///
  /// - Parameter seconds: How long; nothing and less than nothing is no time.
  public init(_ seconds: Double) {
    super.init(name: "SleepOp", body: SleepBody(seconds))
  }
}

private final class SleepBody: OpBody {
  private let seconds: Double

  init(_ seconds: Double) {
    self.seconds = seconds
  }

  func start(_ context: OpContext) -> OpProgress {
    let loop = context.loop
    context.state = loop.schedule(at: loop.deadline(after: seconds)) { context.end() }
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? Timer)?.cancel()
    context.end(error)
  }
}
