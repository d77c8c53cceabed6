import FlowEngine

/// An op that waits `seconds` and then calls `body`.
func waitingOp(
  _ name: ByteString, _ seconds: Double = 1, needs: [Declaration] = [],
  gives: [Declaration] = [], body: @escaping (OpContext) -> Void = { _ in }
) -> Op {
  Op(name: name, needs: needs, gives: gives, body: SleepingBody(seconds, body))
}

final class SleepingBody: OpBody {
  let seconds: (OpContext) -> Double
  let body: (OpContext) -> Void

  init(
    _ seconds: Double, _ body: @escaping (OpContext) -> Void
  ) {
    self.seconds = { _ in seconds }
    self.body = body
  }

  /// Waits as many seconds as `seconds` returns for each execution.
  init(each seconds: @escaping (OpContext) -> Double, _ body: @escaping (OpContext) -> Void) {
    self.seconds = seconds
    self.body = body
  }

  func start(_ context: OpContext) -> CallState {
    let loop = context.loop
    context.state = loop.schedule(after: .seconds(seconds(context))) { [body] in
      body(context)
      context.end()
    }
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? LoopTimer)?.cancel()
    context.end(error)
  }
}

/// Passes its context to a closure and waits without end.
final class HoldingBody: OpBody {
  private let take: (OpContext) -> Void

  init(_ take: @escaping (OpContext) -> Void) {
    self.take = take
  }

  func start(_ context: OpContext) -> CallState {
    take(context)
    return .suspended
  }
}

/// A body that never ends by itself and records the stops it receives.
///
/// A context keeps its run, which keeps this body: a test empties `contexts` at its end.
final class StuckBody: OpBody {
  var contexts: [OpContext] = []
  var asked: [FlowError] = []
  let endsWhenAsked: Bool

  init(endsWhenAsked: Bool = true) {
    self.endsWhenAsked = endsWhenAsked
  }

  func start(_ context: OpContext) -> CallState {
    contexts.append(context)
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    asked.append(error)
    if endsWhenAsked { context.end(error) }
  }
}

/// An op that succeeds at once.
func quick(_ name: ByteString) -> Op { Op(name.description) { _ in } }

/// An op that fails at once, or after `seconds`.
func failing(_ name: ByteString, _ message: ByteString = "no", after seconds: Double? = nil) -> Op {
  guard let seconds else { return Op(name.description) { $0.fail(FlowError(.error, message)) } }
  return waitingOp(name, seconds) { $0.fail(FlowError(.error, message)) }
}

/// Counts how many execute at the same time.
final class CountingBody: OpBody {
  private let seconds: Double?
  private var executing = 0
  private(set) var most = 0

  init(seconds: Double? = 1) {
    self.seconds = seconds
  }

  func start(_ context: OpContext) -> CallState {
    guard let seconds else { return .finished }
    executing += 1
    most = max(most, executing)
    let loop = context.loop
    loop.schedule(after: .seconds(seconds)) { [self] in
      executing -= 1
      context.end()
    }
    return .suspended
  }
}
