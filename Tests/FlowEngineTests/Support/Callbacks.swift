import FlowEngine

/// Decides after half a second, or never.
final class WaitingPredicate: CasePredicate {
  private let answer: Result<Bool, FlowError>?

  init(_ answer: Result<Bool, FlowError>?) {
    self.answer = answer
  }

  func matches(_ data: DataBucket, in run: Run, completion: CallbackCompletion) -> CallState {
    guard let answer else { return .suspended }
    let loop = run.loop
    loop.schedule(after: .seconds(0.5)) {
      switch answer {
      case .success(let isMatch): completion.answer(isMatch)
      case .failure(let error): completion.finish(error)
      }
    }
    return .suspended
  }
}

/// Waits, then calls a closure and succeeds or fails.
final class WaitingCleanup: OpCleanup {
  private let seconds: Double?
  private let error: FlowError?
  private let done: () -> Void

  /// Without `seconds` it waits without end.
  init(_ seconds: Double?, _ error: FlowError? = nil, _ done: @escaping () -> Void = {}) {
    self.seconds = seconds
    self.error = error
    self.done = done
  }

  func cleanUp(_ context: OpContext, completion: CallbackCompletion) -> CallState {
    guard let seconds else { return .suspended }
    let loop = context.loop
    loop.schedule(after: .seconds(seconds)) { [done, error] in
      done()
      completion.finish(error)
    }
    return .suspended
  }
}

/// Waits half a second, or without end.
final class WaitingCallback: RunCallback {
  private let seconds: Double?
  private let error: FlowError?
  private let body: () -> Void

  init(_ error: FlowError? = nil, seconds: Double? = 0.5, _ body: @escaping () -> Void = {}) {
    self.error = error
    self.seconds = seconds
    self.body = body
  }

  func call(_ run: Run, completion: CallbackCompletion) -> CallState {
    guard let seconds else { return .suspended }
    let loop = run.loop
    loop.schedule(after: .seconds(seconds)) { [self] in
      body()
      completion.finish(error)
      completion.finish(FlowError(.error, "twice"))
    }
    return .suspended
  }
}

/// Calls a closure when its task settles.
final class Job: TaskObserver {
  private let body: () -> Void

  init(_ body: @escaping () -> Void) {
    self.body = body
  }

  func run() { body() }
}
