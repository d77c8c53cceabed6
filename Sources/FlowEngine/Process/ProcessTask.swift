/// A program as a task. It succeeds when the program ends with status 0, or with any if that isn't
/// checked.
public final class ProcessTask: FlowTask {
  /// What is run.
  public let request: ProcessRequest
  /// Whether a status other than 0 is a failure.
  public let isChecked: Bool
  /// How the program ended; nil before that, and when it was stopped or couldn't be started.
  public private(set) var result: ProcessResult?
  private var child: ChildProcess?

  /// Starts a program, or has it wait while this process has no descriptors left.
  ///
  /// - Parameters:
  ///   - request: What to run.
  ///   - check: Whether a status other than 0 is a failure.
  ///   - loop: The loop that the task belongs to; called on its thread.
  public init(_ request: ProcessRequest, check: Bool = true, on loop: EventLoop) {
    self.request = request
    isChecked = check
    super.init(on: loop)
    // The child holds this until its end: a program goes on when nobody looks.
    let child = loop.startProcess(request) { [self] result in end(result) }
    if child.isPending { self.child = child }
  }

  public override var title: ByteString { "exec" }

  /// Asks the program, and what it started, to stop: SIGTERM, and SIGKILL when the grace period is
  /// over. The task settles when they have ended.
  override func stop(_ error: FlowError) { child?.cancel(error) }

  private func end(_ result: Result<ProcessResult, FlowError>) {
    child = nil
    switch result {
    case .success(let result):
      self.result = result
      settle(isChecked ? result.failure(of: request) : nil)
    case .failure(let error): settle(error)
    }
    conclude()
  }
}
