/// A program as a task. It succeeds when the program ends with status 0 or, unchecked, with any
/// status. Its result describes the program's end, as does an error because of the status.
///
/// ```swift
/// let task = ProcessTask(ProcessRequest(["git", "status"]), on: loop)
/// print(try await task.value.stdout)
/// ```
public final class ProcessTask: FlowTask<ProcessResult> {
  /// The program and its arguments.
  package let request: ProcessRequest
  /// Whether a status other than 0 is a failure.
  package let isChecked: Bool
  private var child: ChildProcess?
  /// Whether `closeInput` was called.
  package private(set) var isInputClosed = false
  private var knownNumber: Int32?
  /// Until its end, because it holds the log.
  private var place: WorkPlace?
  private var started: Int64 = 0
  private var knownLines: ProcessLines?
  private var isStopped = false

  /// Starts a program, or lets it wait while this process has no descriptors left.
  ///
  /// - Parameters:
  ///   - request: The program to run.
  ///   - check: Whether a status other than 0 is a failure.
  ///   - loop: The loop that the task belongs to; called on its thread.
  public convenience init(_ request: ProcessRequest, check: Bool = true, on loop: FlowEventLoop) {
    self.init(request, check: check, at: nil, on: loop)
  }

  /// Makes a task for a program that the log shows at `place`.
  package init(_ request: ProcessRequest, check: Bool, at place: WorkPlace?, on loop: FlowEventLoop)
  {
    let request = request.continuing(place)
    self.request = request
    isChecked = check
    self.place = place
    super.init(on: loop)
    if place != nil { started = loop.now() }
    // The child retains this until its end: a program continues even when nothing observes it.
    let child = loop.startProcess(request) { [self] result in programEnded(result) }
    if child.isPending {
      child.starter = self
      // While code waits for its end, the program doesn't wait for readers of its lines.
      child.isEndAwaited = { [unowned self] in isAwaited }
      self.child = child
      place?.append(
        starting: LoggedWork(
          starting: request, process: child.processNumber, hiding: loop.secrets), at: started)
    }
  }

  package override var title: ByteString { title(of: "exec") }

  /// Stops the program and its child processes: with SIGTERM, and with SIGKILL when the grace
  /// period is over. The task settles when they have ended.
  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    isStopped = true
    child?.cancel(error)
    return nil
  }

  /// A warning for a program that its run stops, because that has ended; nil if anything has used the task.
  func warning(ofEndOf run: ByteString) -> ByteString? {
    if isStopped || isObserved || knownLines != nil { return nil }
    if case .pipe = request.input { return nil }
    let command = request.commandText(hiding: loop.secrets)
    return """
      warning: \(title) (\(command)) is stopped, as run '\(loop.secrets.redacted(run))' has ended: \
      flow.exec(…):await() waits for the program
      """
  }

  /// The number of its process; nil before its start. After its end the system may give the number to
  /// another process.
  package var processNumber: Int32? { child?.processNumber ?? knownNumber }

  /// The lines of its outputs, the same for all callers. Each reader has to `open` and `close` them:
  /// meanwhile the outputs aren't collected. For a program that has ended without readers they are those
  /// of its result, and stay in it.
  package func lines() -> ProcessLines {
    if let knownLines { return knownLines }
    let lines = child?.makeLines() ?? ProcessLines(of: result ?? error?.process)
    knownLines = lines
    return lines
  }

  /// Writes to the standard input of a program with the input `.pipe`; see `ChildProcess.write`.
  package func write(
    _ bytes: ByteString, for writer: any ProcessInputWriter
  ) -> InputWritten {
    child?.write(bytes, for: writer) ?? .closed
  }

  /// Removes a writer that was to be called.
  package func cancelWrite(_ writer: any ProcessInputWriter) { child?.cancelWrite(writer) }

  /// Ends the standard input, after the bytes that were written.
  package func closeInput() {
    isInputClosed = true
    child?.closeInput()
  }

  private func programEnded(_ result: Result<ProcessResult, FlowError>) {
    let isOutOfReach = child?.isOutOfReach == true
    knownNumber = child?.processNumber
    child = nil
    switch result {
    case .success(let result):
      if isChecked, let failure = result.failure(of: request, hiding: loop.secrets) {
        log(result, failure)
        end(error: failure)
      } else {
        log(result, nil)
        end(with: result)
      }
    case .failure(let error):
      log(error.process, error)
      // The code that awaited it may have been stopped for the same reason, and tells nobody about the program.
      let isLate = isOutOfReach && !isAwaited && (isObserved || error.kind == .cancelled)
      end(error: error)
      if isLate { reportLate(error) }
    }
  }

  private func log(_ result: ProcessResult?, _ error: FlowError?) {
    guard let place else { return }
    self.place = nil
    let work = LoggedWork(
      program: request, result, error, process: knownNumber, hiding: loop.secrets)
    place.append(work, from: started, to: loop.now())
  }
}

extension LoggedWork {
  /// Describes a program that has started; `process` is nil as long as it waits for that.
  init(starting request: ProcessRequest, process: Int32?, hiding secrets: SecretTexts) {
    self.init(
      starting: .program, request.commandText(hiding: secrets), process: process.map { Int($0) })
  }

  /// Describes a program that has ended; `result` is nil for one that has no status.
  init(
    program request: ProcessRequest, _ result: ProcessResult?, _ error: FlowError?,
    process: Int32?, hiding secrets: SecretTexts
  ) {
    self.init(
      .program, request.commandText(hiding: secrets), error: error, status: result?.status,
      signal: result?.signal, process: process.map { Int($0) })
  }
}

extension ProcessRequest {
  /// The request with the trace of the place in its environment, unless the environment is changed in that.
  func continuing(_ place: WorkPlace?) -> ProcessRequest {
    guard let trace = place?.trace, environment["TRACEPARENT"] == nil else { return self }
    var request = self
    request.environment["TRACEPARENT"] = .some(trace.context.traceparent(of: trace.span))
    // The variable of this process may belong to another trace.
    if request.environment["TRACESTATE"] == nil {
      request.environment["TRACESTATE"] = .some(trace.context.state)
    }
    return request
  }
}

extension FlowEventLoop {
  /// Starts a program, or lets it wait while this process has no descriptors left: none is lost.
  ///
  /// - Parameters:
  ///   - request: The program to run.
  ///   - completion: Called once at the end, perhaps before this returns: with the result, whatever
  ///     the status, or with the reason why the program couldn't be started or was cancelled.
  /// - Returns: The program, to cancel it.
  @discardableResult
  package func startProcess(
    _ request: ProcessRequest,
    completion: @escaping (Result<ProcessResult, FlowError>) -> Void
  ) -> ChildProcess {
    let secrets = secrets
    return startChild(request) { completion($0.result(of: request, hiding: secrets)) }
  }

  /// Stops all programs whose request names this owner.
  package func cancelProcesses(of owner: ObjectIdentifier) {
    cancelProcesses(of: owner, .cancelled(reason: "the host of the script was closed")) { _ in
      true
    }
  }

  /// Stops those of them that were started as tasks, and neither by an op nor by another task.
  package func cancelLooseProcesses(of owner: ObjectIdentifier, because error: FlowError) {
    cancelProcesses(of: owner, error) { child in
      guard let task = child.starter as? ProcessTask else { return false }
      return task.owner == nil
    }
  }

  private func cancelProcesses(
    of owner: ObjectIdentifier, _ error: FlowError, where isMeant: (ChildProcess) -> Bool
  ) {
    checkThread()
    guard hasProcesses else { return }
    processes.cancelAll(error) {
      $0.request.owner == owner && isMeant($0)
    }
  }
}
