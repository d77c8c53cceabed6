internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A typed chunk, while it runs: Ctrl-C cancels everything it has started, and nothing that was
/// running before.
final class SessionChunk {
  let loop: EventLoop
  /// The tasks that its own code has started; tasks that those have started belong to them.
  let tasks = OwnedTasks()
  /// The newest task when an interruption was raised in busy code.
  private(set) var mark: UInt64?

  init(on loop: EventLoop) {
    self.loop = loop
  }

  /// Whether an interruption was raised in an op or task, whose failure the chunk may not notice.
  private(set) var isInterruptedWithin = false

  /// Called when the interruption is raised; waiting is impossible then.
  ///
  /// - Parameter isWithin: Whether it is raised in an op or task.
  func noteInterruption(isWithin: Bool) {
    mark = loop.newestTask
    if isWithin { isInterruptedWithin = true }
  }

  /// Cancels everything started since: code that caught the interruption may have continued.
  func keepInterrupted() {
    guard let mark else { return tasks.abandon() }
    let kept = OwnedTasks()
    for task in tasks.all where task.id > mark { kept.add(task) }
    kept.abandon()
  }
}

extension ScriptHost {
  /// From now on an interruption cancels only tasks that the next code starts: background tasks
  /// continue.
  package func beginChunk() { chunk = SessionChunk(on: loop) }

  /// The error with which the code of a chunk ends that has just returned: an interruption that was
  /// raised in an op or task. Nil if there was none.
  package var chunkInterruption: (any Error)? {
    guard chunk?.isInterruptedWithin == true else { return nil }
    let message = Self.interruption
    return LuaError(value: .string(message), message: message)
  }

  /// The code has ended: tasks that it started continue in the background or, if the code was
  /// interrupted while busy, are cancelled. From now on an interruption cancels everything again.
  package func endChunk() {
    guard let ended = chunk else { return }
    ended.keepInterrupted()
    cancel(ended, reason: Self.interruption)
    ended.tasks.abandon()
    chunk = nil
  }

  /// Cancels everything that a chunk has started, and runs until it has settled.
  func cancel(_ chunk: SessionChunk, reason: ByteString) {
    guard chunk.loop === loop else { return }
    let tasks = chunk.tasks
    var stalls = StallPass(times: 2)
    // As in `cancelEverything`.
    var rounds = 100
    while !tasks.isEmpty, rounds > 0 {
      rounds -= 1
      for task in tasks.all { task.cancel(reason: reason) }
      let additions = tasks.additions
      while !loop.run(until: { tasks.isEmpty || tasks.additions != additions }) {
        guard stalls.failNext(on: loop, among: tasks) else { return }
      }
    }
  }
}
