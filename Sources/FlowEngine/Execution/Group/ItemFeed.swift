/// Items that a group executes as they come: of an iterator, which is a task that belongs to the group, or of a stream of the
/// graph around the group.
final class ItemFeed: TaskOwner, TaskObserver {
  private let reader: ItemReader
  /// Set for an iterator.
  private let stream: ItemStream?
  // Safe: the group holds it.
  private unowned(unsafe) let group: GroupExecution
  private let isSecret: Bool
  private lazy var tasks = OwnedTasks(of: self)
  private var task: AnyFlowTask?
  /// Whether the group wants no more items.
  @exclusivity(unchecked) private var isClosed = false
  /// Why the iterator has failed.
  private var error: FlowError?

  /// Makes the feed of a value, with room for so many items of an iterator; nil if the value gives no items one by one.
  init?(
    _ value: FlowValue, of group: GroupExecution, isSecret: Bool, room: Int, on loop: FlowEventLoop
  ) {
    guard case .opaque(let opaque) = value else { return nil }
    self.group = group
    self.isSecret = isSecret
    if let passed = opaque as? ItemReader {
      (reader, stream) = (passed, nil)
    } else {
      let own = ItemStream(limit: room, account: loop.engine.memory)
      (reader, stream) = (own.makeReader(), own)
    }
    reader.onChange = { [unowned group] in group.schedule() }
    guard let stream else { return }
    guard let made = (opaque as? any ItemSequence)?.write(to: stream, of: tasks, on: loop) else {
      reader.close()
      return nil
    }
    task = made
    made.markObserved()
    made.observe(self)
  }

  // The stream and its reader refer to each other.
  deinit { if stream != nil { reader.close() } }

  /// Whether the items come from a stream of the graph.
  var isOfStream: Bool { stream == nil }

  /// How many items the group has taken.
  var count: Int { reader.position }

  /// Why the iterator, or the writer of the stream, has failed, with the number of the item. The items that an iterator has
  /// given before come first.
  var failure: (error: FlowError, item: Int)? {
    guard !isClosed, let error = reader.failure ?? (hasNext ? nil : error) else { return nil }
    return (error, reader.written + 1)
  }

  /// Whether there is an item now.
  var hasNext: Bool { !isClosed && reader.hasItem }

  /// Whether no item can follow, and the iterator's code has ended.
  var hasEnded: Bool { task == nil && (isClosed || (reader.hasNext && !reader.hasItem)) }

  func next() -> FlowValue? {
    guard hasNext else { return nil }
    // It executes now: the group says when there is room for another one.
    stream?.lowerLimit()
    guard case .item(let item) = reader.next() else { return nil }
    return isSecret ? .secret(item) : item
  }

  /// Says how many items of the iterator may be there that don't execute.
  func setRoom(_ room: Int) { stream?.setLimit(room) }

  /// Stops the iterator, and drops the items that it has given.
  func close(_ error: FlowError) {
    isClosed = true
    reader.close()
    task?.stop(error)
  }

  func failStalled() -> Bool { task?.stopStalled() == true }

  func abandon() {
    isClosed = true
    reader.close()
    task?.unobserve(self)
    task = nil
    tasks.abandon()
  }

  // MARK: Of its task

  func taskEnded(_ ended: AnyFlowTask) {
    task = nil
    error = ended.error
    stream?.end()
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
  var owningRun: AnyFlowTask? { parent.run }
}
