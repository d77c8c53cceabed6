/// A program as a task. It succeeds when the program ends with status 0 or, unchecked, with any
/// status. Its result describes the program's end, as does an error because of the status.
public final class ProcessTask: FlowTask<ProcessResult> {
  /// The program and its arguments.
  public let request: ProcessRequest
  /// Whether a status other than 0 is a failure.
  public let isChecked: Bool
  private var child: ChildProcess?
  /// Whether `closeInput` was called.
  public private(set) var isInputClosed = false
  private var knownNumber: Int32?
  private var knownLines: ProcessLines?

  /// Starts a program, or lets it wait while this process has no descriptors left.
  ///
  /// - Parameters:
  ///   - request: The program to run.
  ///   - check: Whether a status other than 0 is a failure.
  ///   - loop: The loop that the task belongs to; called on its thread.
  public init(_ request: ProcessRequest, check: Bool = true, on loop: EventLoop) {
    self.request = request
    isChecked = check
    super.init(on: loop)
    // The child retains this until its end: a program continues even when nothing observes it.
    let child = loop.startProcess(request) { [self] result in programEnded(result) }
    if child.isPending {
      child.starter = self
      // While code waits for its end, the program doesn't wait for readers of its lines.
      child.isEndAwaited = { [unowned self] in isAwaited }
      self.child = child
    }
  }

  public override var title: ByteString { title(of: "exec") }

  /// Stops the program and its child processes: with SIGTERM, and with SIGKILL when the grace
  /// period is over. The task settles when they have ended.
  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    child?.cancel(error)
    return nil
  }

  /// The number of its process; nil before its start. After its end the system may give the number to
  /// another process.
  public var processNumber: Int32? { child?.processNumber ?? knownNumber }

  /// The lines of its outputs, the same for all callers. Each reader has to `open` and `close` them:
  /// meanwhile the outputs aren't collected. For a program that has ended without readers they are those
  /// of its result, and stay in it.
  public func lines() -> ProcessLines {
    if let knownLines { return knownLines }
    let lines = child?.makeLines() ?? ProcessLines(of: result ?? error?.process)
    knownLines = lines
    return lines
  }

  /// Writes to the standard input of a program with the input `.pipe`; see `ChildProcess.write`.
  public func write(
    _ bytes: ByteString, for writer: any ProcessInputWriter
  ) -> InputWritten {
    child?.write(bytes, for: writer) ?? .closed
  }

  /// Removes a writer that was to be called.
  public func cancelWrite(_ writer: any ProcessInputWriter) { child?.cancelWrite(writer) }

  /// Ends the standard input, after the bytes that were written.
  public func closeInput() {
    isInputClosed = true
    child?.closeInput()
  }

  private func programEnded(_ result: Result<ProcessResult, FlowError>) {
    knownNumber = child?.processNumber
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
