/// A program as a task. It succeeds when the program ends with status 0, or with any if that isn't
/// checked; its result is how the program ended, which an error of its status holds as well.
public final class ProcessTask: FlowTask<ProcessResult> {
  /// What is run.
  public let request: ProcessRequest
  /// Whether a status other than 0 is a failure.
  public let isChecked: Bool
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
    let child = loop.startProcess(request) { [self] result in programEnded(result) }
    if child.isPending {
      child.task = self
      self.child = child
    }
  }

  public override var title: ByteString { title(of: "exec") }

  /// Asks the program, and what it started, to stop: SIGTERM, and SIGKILL when the grace period is
  /// over. The task settles when they have ended.
  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    child?.cancel(error)
    return nil
  }

  private func programEnded(_ result: Result<ProcessResult, FlowError>) {
    child = nil
    switch result {
    case .success(let result):
      if isChecked, let failure = result.failure(of: request, hiding: loop.secrets) {
        end(error: failure)
      } else {
        end(with: result)
      }
    case .failure(let error): end(error: error)
    }
  }
}
