/// Items that a group executes as they come: of an iterator, which is a task that belongs to the group, or of a stream of the
/// graph around the group.
final class ItemFeed: TaskOwner, TaskObserver {
  /// Set for a stream of the graph.
  private let reader: ItemReader?
  // Safe: the group holds it.
  private unowned(unsafe) let group: GroupExecution
  private let isSecret: Bool
  private lazy var tasks = OwnedTasks(of: self)

  // Unchecked exclusivity: see HotPath.swift.

  /// The task of an iterator, until it has ended, and the call for its next item.
  @exclusivity(unchecked) private var task: AnyFlowTask?
  @exclusivity(unchecked) private var callNext: ItemCall?
  /// An item that the group hasn't taken.
  @exclusivity(unchecked) private var ahead: FlowValue?
  /// Whether the iterator was called, and its item hasn't come.
  @exclusivity(unchecked) private var isCalled = false
  /// When other jobs of the loop run, although the iterator could be called for another item, and whether that time has come.
  @exclusivity(unchecked) private var turnEnd: Int64 = 0
  @exclusivity(unchecked) private var isTurnOver = false
  /// How many items may be taken before that time: a virtual clock stands still while the iterator is called.
  @exclusivity(unchecked) private var turnLeft = turnLength
  private static let turnLength = 1000
  /// How many items the group has taken.
  @exclusivity(unchecked) private(set) var count = 0
  /// Whether the group wants no more items.
  @exclusivity(unchecked) private var isClosed = false
  /// Why the iterator has failed.
  private var error: FlowError?

  /// Makes the feed of a value; nil if the value gives no items one by one.
  init?(_ value: FlowValue, of group: GroupExecution, isSecret: Bool, on loop: FlowEventLoop) {
    guard case .opaque(let opaque) = value else { return nil }
    self.group = group
    self.isSecret = isSecret
    reader = opaque as? ItemReader
    if let reader {
      reader.onChange = { [unowned group] in group.schedule() }
      return
    }
    let calls = (opaque as? any ItemSequence)?.calls(of: tasks, on: loop) { [weak self] in
      // An async sequence may have an item ready when its group is gone.
      self?.take($0)
    }
    guard let calls else { return nil }
    (task, callNext) = (calls.task, calls.call)
    calls.task.markObserved()
    calls.task.observe(self)
  }

  // The stream holds its reader, which may be closed later.
  deinit { reader?.onChange = nil }

  /// Whether the items come from a stream of the graph.
  var isOfStream: Bool { reader != nil }

  /// The reader of a stream whose writer wasn't executed.
  var lost: ItemReader? { reader?.isLost == true ? reader : nil }

  /// Why the iterator, or the writer of the stream, has failed, with the number of the item. The items that an iterator has
  /// given before come first.
  var failure: (error: FlowError, item: Int)? {
    guard !isClosed, let error = reader?.failure ?? (hasNext ? nil : error) else { return nil }
    return (error, (reader?.written ?? count) + 1)
  }

  /// Whether there is an item now.
  var hasNext: Bool { !isClosed && (reader?.hasItem ?? (ahead != nil)) }

  /// Whether no item can follow, and the iterator's code has ended.
  var hasEnded: Bool {
    if isClosed { return task == nil }
    if let reader { return reader.hasNext && !reader.hasItem }
    return task == nil && ahead == nil
  }

  func next() -> FlowValue? {
    guard !isClosed, let item = reader.map({ $0.nextItem() }) ?? ahead.take() ?? call() else {
      return nil
    }
    count += 1
    return isSecret ? .secret(item) : item
  }

  /// Has the iterator called for one item more than those that execute.
  func fetch() {
    if reader == nil, !isClosed, ahead == nil { ahead = call() }
  }

  /// Calls the iterator, unless its item is still to come.
  private func call() -> FlowValue? {
    guard let callNext, !isCalled else { return nil }
    isCalled = true
    let engine = group.engine
    let item = callNext(group.parent.deadline)
    // The call has taken time.
    if engine.stampedNow() >= turnEnd { isTurnOver = true }
    guard item != nil else { return nil }
    isCalled = false
    turnLeft -= 1
    if turnLeft == 0 { isTurnOver = true }
    return item
  }

  /// Lets others run now and then: calls that never wait may take long together.
  func endTurn() {
    guard isTurnOver else { return }
    isTurnOver = false
    turnLeft = Self.turnLength
    turnEnd = group.engine.takeStamp().later(by: 1_000_000)
    group.engine.endTurn()
    group.loop.looksAround()
  }

  /// Takes an item for which the group has waited.
  private func take(_ item: FlowValue) {
    isCalled = false
    if isClosed { return }
    ahead = item
    group.schedule()
  }

  /// Stops the iterator, and drops the item that it has given.
  func close(_ error: FlowError) {
    isClosed = true
    ahead = nil
    reader?.close()
    task?.stop(error)
  }

  func failStalled() -> Bool { task?.stopStalled() == true }

  func abandon() {
    isClosed = true
    reader?.close()
    task?.unobserve(self)
    (task, callNext) = (nil, nil)
    tasks.abandon()
  }

  // MARK: Of its task

  func taskEnded(_ ended: AnyFlowTask) {
    (task, callNext) = (nil, nil)
    error = ended.error
    // Tasks that its code has left end with the run.
    if !tasks.isOnly(ended) { parent.run.adopt(all: tasks) }
    group.schedule()
  }

  func taskIsGone() { (task, callNext) = (nil, nil) }

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
  var owningRun: AnyFlowTask? { parent.run }
}
