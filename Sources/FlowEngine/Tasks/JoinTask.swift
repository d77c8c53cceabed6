/// A task that waits for several others and ends with an outcome made from theirs. It stops none of them, except those
/// that are `losers`.
///
/// ```swift
/// let first = try FlowTask.whenAnyFinish([fetchImage(), fetchImage()])
/// save(try await first.value)
/// print("server", first.firstIndex ?? 0)
/// ```
public final class JoinTask<Success>: FlowTask<Success> {
  /// The condition that it waits for.
  package enum Goal {
    /// All results, or the first task that doesn't succeed.
    case allSucceed
    /// The end of all.
    case allFinish
    /// The end of one.
    case anyFinish
    /// The result of one, or the end of all.
    case anySucceeds
  }

  /// The observer of one task, which knows its place in the list. The task holds it, and it holds
  /// the join; it releases the join when either has ended.
  private final class Input: TaskObserver {
    unowned(unsafe) var task: AnyFlowTask?
    private var join: JoinTask?
    private let index: Int
    /// The task, from its end until this has its turn.
    private var ended: AnyFlowTask?

    init(_ join: JoinTask, _ index: Int, _ task: AnyFlowTask) {
      self.join = join
      self.index = index
      self.task = task
    }

    var waitingTask: AnyFlowTask? { join }

    var relay: AnyFlowTask? { join }

    func taskEnded(_ task: AnyFlowTask) {
      self.task = nil
      if task.loop.isShutDown { return taskIsGone() }
      ended = task
      // Dispatched, so that joins of joins grow the stack as little as continuations do.
      task.loop.registry.dispatch(self, .immediate)
    }

    func run() {
      guard let join, let task = ended else { return }
      self.join = nil
      ended = nil
      join.inputEnded(index, task)
    }

    func taskIsGone() {
      task = nil
      ended = nil
      // It may hold the last reference to the join, whose end may release others.
      if let join { join.loop.registry.released.append(join) }
      join = nil
    }
  }

  private let goal: Goal
  /// The error of a task, to be passed on.
  private let errorOf: (AnyFlowTask) -> FlowError?
  /// Makes the result: from all tasks in order or, for `anyFinish` and `anySucceeds`, from the first alone.
  private let makeResult: ([AnyFlowTask]) throws -> Success
  private var inputs: ContiguousArray<Input> = []
  /// The ended tasks, by their places.
  private var ended: ContiguousArray<AnyFlowTask?> = []
  private var pendingCount = 0
  /// The tasks that it stops at its end.
  private var losers: [AnyFlowTask] = []

  /// The 0-based place of the first task that has ended or, for `anySucceeds`, succeeded; nil before.
  public private(set) var firstIndex: Int?

  /// Makes a task; `begin` starts it.
  package init(
    _ goal: Goal, on loop: FlowEventLoop, error: @escaping (AnyFlowTask) -> FlowError?,
    result: @escaping ([AnyFlowTask]) throws -> Success
  ) {
    self.goal = goal
    errorOf = error
    makeResult = result
    super.init(on: loop)
  }

  /// Waits for `tasks`, which are marked as observed; may end at once. Those that haven't ended then are stopped, if
  /// it `cancelsRest`.
  package func begin(_ tasks: [AnyFlowTask], cancelsRest: Bool = false) {
    for task in tasks { task.markObserved() }
    if tasks.isEmpty { return end(as: []) }
    for task in tasks {
      if let error = task.foreignError(on: loop) { return end(error: error) }
    }
    if cancelsRest { losers = tasks }
    ended = ContiguousArray(repeating: nil, count: tasks.count)
    pendingCount = tasks.count
    count(Self.usualSize + tasks.count * Self.inputSize)
    for (index, task) in tasks.enumerated() {
      if state != .pending { return }
      if task.isConcluded {
        inputEnded(index, task)
      } else {
        let input = Input(self, index, task)
        inputs.append(input)
        task.observe(input)
      }
    }
  }

  private func inputEnded(_ index: Int, _ task: AnyFlowTask) {
    guard state == .pending else { return }
    ended[index] = task
    pendingCount -= 1
    let error = goal == .allFinish ? nil : errorOf(task)
    if firstIndex == nil, goal != .anySucceeds || error == nil { firstIndex = index }
    if let error, goal != .anySucceeds {
      releaseInputs()
      end(error: error)
    } else if error == nil, awaitsAny {
      end(as: [task])
    } else if pendingCount == 0 {
      end(as: ended.compactMap { $0 })
    }
  }

  private func end(as tasks: [AnyFlowTask]) {
    releaseInputs()
    do {
      end(with: try makeResult(tasks))
    } catch {
      end(error: .from(error))
    }
    stopLosers("another task has succeeded")
  }

  private func stopLosers(_ reason: ByteString) {
    let tasks = losers
    losers = []
    for task in tasks { task.cancel(reason: reason) }
  }

  /// The bytes of an input, with its places in three lists.
  private static var inputSize: Int { 112 }

  private func releaseInputs() {
    count(Self.usualSize)
    let open = inputs
    inputs = []
    ended = []
    for input in open {
      input.task?.unobserve(input)
      input.taskIsGone()
    }
    loop.registry.releaseAll()
  }

  override var awaitedCount: Int { inputs.count }

  override func addAwaited(to tasks: inout ContiguousArray<AnyFlowTask>) {
    for input in inputs {
      if let task = input.task { tasks.append(task) }
    }
  }

  override var awaitsAny: Bool { goal == .anyFinish || goal == .anySucceeds }

  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    releaseInputs()
    end(error: error)
    stopLosers(error.message)
    return nil
  }
}
