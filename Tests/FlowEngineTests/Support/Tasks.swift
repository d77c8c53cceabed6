import FlowEngine

extension FlowTask {
  /// The result after everything on the loop has ended; nil unless the task has succeeded.
  func finalResult() -> Success? {
    loop.runUntilIdle()
    return result
  }
}
