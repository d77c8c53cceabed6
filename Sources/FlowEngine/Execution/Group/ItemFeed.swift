/// The items of an iterator, for the group that executes them: they come from a task that belongs to the group.
final class ItemFeed: TaskOwner, TaskObserver {
  private let stream: ItemStream
  // Safe: the group holds it.
  private unowned(unsafe) let group: GroupExecution
  private let isSecret: Bool
  private lazy var tasks = OwnedTasks(of: self)
  private var task: AnyFlowTask?
  /// Why the iterator has failed.
  private(set) var error: FlowError?
  /// Whether the group wants no more items.
  private var isClosed = false

  init(of group: GroupExecution, isSecret: Bool) {
    self.group = group
    self.isSecret = isSecret
    // So that no more than one item waits besides those that execute.
    stream = ItemStream(limit: 1)
  }

  /// Begins to read; false if the value gives no items.
  func begin(_ value: FlowValue, on loop: FlowEventLoop) -> Bool {
    guard case .opaque(let opaque) = value else { return false }
    stream.onItem = { [unowned self] in group.schedule() }
    guard
      let made = (opaque as? any ItemSequence)?.write(to: stream, of: tasks, on: loop)
    else { return false }
    task = made
    made.markObserved()
    made.observe(self)
    return true
  }

  /// How many items there were.
  var count: Int { stream.count }

  /// Whether there is an item now.
  var hasNext: Bool { !isClosed && !stream.isEmpty }

  /// Whether no item can follow, and the iterator's code has ended.
  var hasEnded: Bool { task == nil && (isClosed || stream.isEmpty) }

  func next() -> FlowValue? {
    guard !isClosed, let item = stream.next() else { return nil }
    return isSecret ? .secret(item) : item
  }

  /// Stops the iterator, and drops the items that it has given.
  func close(_ error: FlowError) {
    isClosed = true
    stream.close()
    task?.stop(error)
  }

  func failStalled() -> Bool { task?.stopStalled() == true }

  func abandon() {
    isClosed = true
    stream.close()
    task?.unobserve(self)
    task = nil
    tasks.abandon()
  }

  // MARK: Of its task

  func taskEnded(_ ended: AnyFlowTask) {
    task = nil
    stream.end()
    if !isClosed { error = ended.error }
    group.schedule()
  }

  func taskIsGone() { task = nil }

  func run() {}

  private var parent: Execution { group.parent }
  var taskDeadline: Int64 { parent.surroundings.deadline }
  var taskStopError: FlowError? { group.stop }
  var enclosingTasks: OwnedTasks? { parent.isShielded ? nil : parent.run.owner }
  var workPlace: WorkPlace? { parent.run.owner?.workPlace }
  func expireTask() -> FlowError? { parent.expireTask() }
  func failOwner(_ error: FlowError) { parent.failEverything(error) }
  func holds(_ limit: Limit) -> Bool { parent.holdsWithin(limit) }
  var tasksAround: OwnedTasks? { parent.run.owner }
}
