/// A Swift task that runs on a loop's thread, or elsewhere on behalf of one of its ops.
///
/// Confined to the loop's thread, except for the task-local reference to it.
// Only the loop's thread touches the properties that change: `start` and `end` are called there,
// and `beginWait` and `endWait` check it.
class LoopTask: @unchecked Sendable {
  /// The task that the calling code belongs to.
  @TaskLocal static var current: LoopTask?

  // Safe: see `abandon`. A task that ends later finds nil here.
  private unowned(unsafe) var loop: FlowEventLoop?
  private let identity: FlowEventLoop.Identity
  /// Set while it is suspended.
  private var number: UInt64 = 0
  private var task: Task<Void, Never>?
  /// How many of its waits are for something of the loop's own.
  private var waits = 0
  private(set) var hasEnded = false
  private(set) var wasCancelled = false
  /// Whether it counts as work that runs off the loop.
  private var isOutside = false

  init(on loop: FlowEventLoop) {
    self.loop = loop
    identity = loop.identity
  }

  /// The task of the loop that can't end before its waits have; nil for none.
  var waitingTask: AnyFlowTask? { nil }

  /// The call of another thread that it does the work of; nil for none.
  var caller: MailboxCall? { nil }

  /// The task's work. It runs on the loop's thread, unless it is isolated elsewhere.
  nonisolated(nonsending) func perform() async {}

  /// Called on the loop's thread after `perform` has returned, unless the loop was shut down
  /// before.
  func didEnd() {}

  /// Starts it in a context, or else in the calling code's, and runs it until its first wait.
  final func start(on loop: FlowEventLoop, in context: TaskContext?) {
    if let context { context.run { start(on: loop) } } else { start(on: loop) }
  }

  /// Starts it and runs it until its first wait.
  func start(on loop: FlowEventLoop) {
    let task = Task.immediate(executorPreference: loop.taskSupport.executor) {
      await LoopTask.$current.withValue(self) { await self.perform() }
      self.end()
    }
    if !hasEnded { suspend(task, number: loop.taskSupport.reserveNumber(), on: loop) }
  }

  /// Keeps a running task, and counts it as work that may make the loop continue.
  func suspend(_ task: Task<Void, Never>, number: UInt64, on loop: FlowEventLoop) {
    self.task = task
    self.number = number
    loop.taskSupport.add(self, number: number)
    updateOutside()
  }

  /// The loop, if the calling code is on its thread and that is its mailbox.
  func loop(of mailbox: LoopMailbox) -> FlowEventLoop? {
    guard identity.isCurrentThread, let loop, loop.mailbox === mailbox else { return nil }
    return loop
  }

  /// Stops it: `Task.isCancelled` becomes true in it, and its cancellation handlers are called.
  func cancel() {
    wasCancelled = true
    task?.cancel()
  }

  /// Stops it as a part of everything on the loop, unless something else on the loop does.
  func stopWithLoop(reason: ByteString) {}

  /// Clears the reference to the loop, which is shut down.
  func abandon() {
    loop = nil
    task = nil
    isOutside = false
  }

  /// Handles its end.
  func end() {
    identity.check()
    hasEnded = true
    guard let loop else { return }
    if number != 0 {
      loop.registry.swiftTasks?.remove(number)
      number = 0
      task = nil
      updateOutside()
    }
    didEnd()
    // Code that has inherited the reference to this task may outlive the loop.
    self.loop = nil
  }

  // MARK: Waits for something of the loop's own

  /// Records a wait for a timer or run of the loop, which by itself can't make the loop continue.
  func beginWait() {
    guard identity.isCurrentThread else { return }
    waits += 1
    updateOutside()
  }

  func endWait() {
    guard identity.isCurrentThread else { return }
    waits -= 1
    updateOutside()
  }

  private func updateOutside() {
    guard let loop else { return }
    let isOutside = number != 0 && waits == 0
    if isOutside == self.isOutside { return }
    self.isOutside = isOutside
    loop.outsideWork += isOutside ? 1 : -1
  }
}

/// The code of `FlowEventLoop.perform`, which nothing stops but the end of its loop.
// As with `LoopTask`, all of it is touched on the loop's thread only.
private final class BackgroundCode<Success>: LoopTask, @unchecked Sendable {
  // Both are cleared at the end: they may retain what waits for it.
  private var body: AsyncTaskBody<Success>?
  private var then: ((Result<Success, FlowError>) -> Void)?
  private var result: Result<Success, FlowError>?

  init(
    _ body: @escaping AsyncTaskBody<Success>,
    _ then: @escaping (Result<Success, FlowError>) -> Void,
    on loop: FlowEventLoop
  ) {
    self.body = body
    self.then = then
    super.init(on: loop)
  }

  override nonisolated(nonsending) func perform() async {
    guard let body else { return }
    do { result = .success(try await body()) } catch { result = .failure(.from(error)) }
  }

  override func didEnd() {
    let (result, then) = (result, then)
    (self.body, self.then, self.result) = (nil, nil, nil)
    // Only the end of the loop cancels it.
    if let result, !wasCancelled { then?(result) }
  }

  override func abandon() {
    super.abandon()
    (body, then) = (nil, nil)
  }
}

extension FlowEventLoop {
  /// Runs async code of a library, at once until its first wait; on the loop's thread, where it also continues.
  ///
  /// It is no task that scripts see, and no run stops it. It keeps the loop from being idle as far as what it waits for
  /// does. When the loop is shut down its waits end with an error of kind `cancelled`, and nobody gets its result.
  ///
  /// - Parameters:
  ///   - body: The code.
  ///   - then: Gets the result, in the turn in which the code ends.
  package func perform<Success>(
    _ body: @escaping AsyncTaskBody<Success>,
    then: @escaping (Result<Success, FlowError>) -> Void = { _ in }
  ) {
    checkThread()
    if !isShutDown { BackgroundCode(body, then, on: self).start(on: self) }
  }
}

/// Work of a loop's task that executes on other threads: only the number of the task is known there.
struct OutsideWork: Sendable {
  /// The work that the calling code belongs to.
  @TaskLocal static var current: OutsideWork?

  let mailbox: LoopMailbox
  let number: UInt64

  /// The task, on the thread of its loop; nil on another loop, and after its end.
  func task(on loop: FlowEventLoop) -> LoopTask? {
    loop.mailbox === mailbox ? loop.registry.swiftTasks?.task(number) : nil
  }
}

/// The Swift tasks of a loop, and their executor; made when the first one starts.
final class LoopTasks {
  let executor: LoopExecutor
  /// Tasks that have started and not ended, unless they end at their start.
  private var suspended: [UInt64: LoopTask] = [:]
  private var lastNumber: UInt64 = 0

  init(_ loop: FlowEventLoop) {
    executor = LoopExecutor(loop)
  }

  /// Returns a number for a task, never used before.
  func reserveNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }

  /// Keeps a task that hasn't ended yet.
  func add(_ task: LoopTask, number: UInt64) { suspended[number] = task }

  /// The task of a number; nil once it was removed.
  func task(_ number: UInt64) -> LoopTask? { suspended[number] }

  func remove(_ number: UInt64) { suspended[number] = nil }

  /// Stops all tasks that nothing else on the loop stops.
  func stopAll(reason: ByteString) {
    for task in suspended.values { task.stopWithLoop(reason: reason) }
  }

  /// Cancels all tasks of a loop that is shut down, and runs their reactions to the cancellation
  /// without waiting for anything else.
  func shutDown() {
    let tasks = suspended
    suspended = [:]
    for task in tasks.values { task.cancel() }
    executor.drain()
    for task in tasks.values { task.abandon() }
  }
}

extension FlowEventLoop {
  /// The loop's Swift tasks.
  var taskSupport: LoopTasks {
    if let tasks = registry.swiftTasks { return tasks }
    let made = LoopTasks(self)
    registry.swiftTasks = made
    return made
  }
}
