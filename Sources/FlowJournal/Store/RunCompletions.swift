internal import FlowEngine

/// What waits on a loop for writes: their completions, in the order of the writes.
///
/// Only the number of a writer crosses threads: the objects of a completion belong to the loop's thread.
final class RunCompletions: LoopExtension {
  private struct Waiting {
    let failed: (FlowError) -> Void
    var isClosed = false
    /// nil for a write that nothing waits for.
    var completions: [((FlowError?) -> Void)?] = []
  }

  // Unchecked exclusivity: see `OpKeeping`.
  @exclusivity(unchecked) private var waiting: [UInt64: Waiting] = [:]
  private var last: UInt64 = 0

  /// That of a loop; made when it is first needed.
  static func of(_ loop: EventLoop) -> RunCompletions {
    let key = ObjectIdentifier(RunCompletions.self)
    if let present = loop.extensions[key] as? RunCompletions { return present }
    let made = RunCompletions()
    loop.extensions[key] = made
    return made
  }

  /// Adds a writer; `failed` is called before the completion of a write that has failed.
  ///
  /// - Returns: The number of the writer.
  func add(failed: @escaping (FlowError) -> Void) -> UInt64 {
    last += 1
    waiting[last] = Waiting(failed: failed)
    return last
  }

  /// Adds the completion of the writer's next write.
  func expect(of writer: UInt64, _ completion: ((FlowError?) -> Void)?) {
    waiting[writer]?.completions.append(completion)
  }

  /// Calls the oldest completions of a writer.
  func complete(_ count: Int, of writer: UInt64, with error: FlowError?) {
    guard let present = waiting[writer] else { return }
    let done = present.completions.prefix(count)
    waiting[writer]?.completions.removeFirst(done.count)
    removeClosed(writer)
    if let error { present.failed(error) }
    for completion in done { completion?(error) }
  }

  /// Forgets a writer that writes nothing more, when nothing waits for it any longer.
  func close(_ writer: UInt64) {
    waiting[writer]?.isClosed = true
    removeClosed(writer)
  }

  private func removeClosed(_ writer: UInt64) {
    if let last = waiting[writer], last.isClosed, last.completions.isEmpty {
      waiting[writer] = nil
    }
  }

  func loopIsShutDown() { waiting = [:] }
}
