internal import FlowEngine

/// What waits on a loop for writes: their completions, in the order of the writes.
///
/// Only the number of a writer crosses threads: the objects of a completion belong to the loop's thread.
final class RunCompletions: LoopExtension {
  private var waiting: [UInt64: [(FlowError?) -> Void]] = [:]
  private var last: UInt64 = 0

  /// That of a loop; made when it is first needed.
  static func of(_ loop: EventLoop) -> RunCompletions {
    let key = ObjectIdentifier(RunCompletions.self)
    if let present = loop.extensions[key] as? RunCompletions { return present }
    let made = RunCompletions()
    loop.extensions[key] = made
    return made
  }

  /// The number for a new writer.
  func add() -> UInt64 {
    last += 1
    return last
  }

  /// Adds the completion of the writer's next write.
  func expect(of writer: UInt64, _ completion: @escaping (FlowError?) -> Void) {
    waiting[writer, default: []].append(completion)
  }

  /// Calls the oldest completions of a writer.
  func complete(_ count: Int, of writer: UInt64, with error: FlowError?) {
    guard var list = waiting.removeValue(forKey: writer) else { return }
    let done = list.prefix(count)
    list.removeFirst(done.count)
    if !list.isEmpty { waiting[writer] = list }
    for completion in done { completion(error) }
  }

  func loopIsShutDown() { waiting = [:] }
}
