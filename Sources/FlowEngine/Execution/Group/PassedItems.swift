/// Results of a group, for another group of the same graph that executes them as soon as they are there.
final class PassedItems: ItemSequence {
  private var items = FIFO<FlowValue>()
  private var end: Result<Void, FlowError>?
  /// Set while the other group takes them.
  private var reader: PassingTask?

  var typeName: ByteString { "items" }

  func logText(limit: Int) -> ByteString { ByteString("items").truncated(to: limit) }

  func matches(typeName: ByteString) -> Bool { typeName == "items" }

  func listCount() -> Int? { nil }

  func element(at index: Int) -> FlowValue { .null }

  func plainCopy() -> PlainValue? { nil }

  /// Adds the next result.
  func add(_ item: FlowValue) {
    items.append(item)
    pass()
  }

  /// No result follows, because the group has ended.
  func end(_ error: FlowError?) {
    guard end == nil else { return }
    end = error.map { .failure($0) } ?? .success(())
    pass()
  }

  func write(to stream: ItemStream, of owner: OwnedTasks, on loop: FlowEventLoop) -> AnyFlowTask? {
    let task = PassingTask(stream, on: loop)
    reader = task
    owner.add(task)
    pass()
    return task
  }

  private func pass() {
    guard let reader, reader.state == .pending, !reader.isWaiting else { return }
    while let item = items.popFirst() {
      if !reader.stream.put(item) {
        reader.isWaiting = true
        reader.stream.whenRoom { [weak self, weak reader] in
          reader?.isWaiting = false
          self?.pass()
        }
        return
      }
    }
    switch end {
    case .success?: reader.end(with: ())
    case .failure(let error)?: reader.end(error: error)
    case nil: break
    }
  }
}

/// Writes the results of one group to the stream of another one.
private final class PassingTask: FlowTask<Void> {
  let stream: ItemStream
  /// Whether the other group has an item that it can't execute yet.
  var isWaiting = false

  init(_ stream: ItemStream, on loop: FlowEventLoop) {
    self.stream = stream
    super.init(on: loop)
  }

  override var title: ByteString { "items" }

  override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    stream.stopWaiting()
    end(error: error)
    return nil
  }
}
