extension EventLoop {
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
