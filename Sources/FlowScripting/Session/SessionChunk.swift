internal import FlowEngine
internal import LuaVM

/// A chunk that a person has typed, while it runs: Ctrl-C cancels what it has started, and nothing that
/// went on before.
final class SessionChunk {
  let loop: EventLoop
  /// What its own code has started; what was started by that belongs to that.
  let tasks = OwnedTasks()
  /// The newest task when an interruption was raised in code that was busy.
  private(set) var mark: UInt64?

  init(on loop: EventLoop) {
    self.loop = loop
  }

  /// Whether an interruption was raised in an op or task, whose failure the chunk need not notice.
  private(set) var isInterruptedWithin = false

  /// Called when the interruption is raised; nothing can be waited for then.
  ///
  /// - Parameter isWithin: Whether it is raised in an op or task.
  func noteInterruption(isWithin: Bool) {
    mark = loop.newestTask
    if isWithin { isInterruptedWithin = true }
  }

  /// Gives up what was started since: what has caught the interruption may have gone on with it.
  func keepInterrupted() {
    guard let mark else { return tasks.abandon() }
    let kept = OwnedTasks()
    for task in tasks.all where task.id > mark { kept.add(task) }
    kept.abandon()
  }
}

extension ScriptHost {
  /// From now on an interruption cancels only what the code that runs next starts: what goes on in the
  /// background stays.
  public func beginChunk() { chunk = SessionChunk(on: loop) }

  /// The error that the code ends with which runs as a chunk and has just returned: an interruption that
  /// was raised in an op or task. Nil when there was none.
  public var chunkInterruption: (any Error)? {
    guard chunk?.isInterruptedWithin == true else { return nil }
    let message = LuaString(Self.interruption)
    return LuaError(value: .string(message), message: message)
  }

  /// The code has ended: what it has started goes on in the background or, if the code was interrupted
  /// while it was busy, is cancelled. From now on an interruption cancels everything again.
  public func endChunk() {
    guard let ended = chunk else { return }
    ended.keepInterrupted()
    cancel(ended, reason: Self.interruption)
    ended.tasks.abandon()
    chunk = nil
  }

  /// Cancels what a chunk has started, and goes on until it has settled.
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
