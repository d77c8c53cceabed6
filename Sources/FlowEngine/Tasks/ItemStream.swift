/// Items that a writer passes to one reader, a few at a time. Confined to its loop's thread.
package final class ItemStream {
  /// How many may be unread before the writer waits.
  private let limit: Int
  private var items = FIFO<FlowValue>()
  /// Whether the writer has ended.
  private(set) var hasEnded = false
  /// How many items were written.
  private(set) var count = 0
  /// Called when there is an item.
  var onItem: (() -> Void)?
  private var onRoom: (() -> Void)?

  init(limit: Int) { self.limit = limit }

  var isEmpty: Bool { items.isEmpty }

  /// Adds an item; returns whether the writer may continue with the next one.
  package func put(_ item: FlowValue) -> Bool {
    if hasEnded { return true }
    items.append(item)
    count += 1
    onItem?()
    return items.count < limit
  }

  /// Calls `body` once, when the writer may continue.
  package func whenRoom(_ body: @escaping () -> Void) { onRoom = body }

  /// Nobody waits for room any more.
  package func stopWaiting() { onRoom = nil }

  func next() -> FlowValue? {
    let item = items.popFirst()
    if items.count < limit { onRoom.take()?() }
    return item
  }

  /// No item follows.
  func end() { hasEnded = true }

  /// Nobody reads any more.
  func close() {
    hasEnded = true
    items.removeAll()
    onItem = nil
    onRoom = nil
  }
}

/// A value that gives items one after another, such as an iterator.
package protocol ItemSequence: OpaqueValue {
  /// Starts to write its items; the task ends when there are no more, or with the error of the iterator.
  ///
  /// - Parameters:
  ///   - stream: Gets the items. `put` says when to wait.
  ///   - owner: The tasks that the writer belongs to.
  ///   - loop: The loop of the group.
  /// - Returns: The task; nil if it isn't such a value.
  func write(to stream: ItemStream, of owner: OwnedTasks, on loop: FlowEventLoop) -> AnyFlowTask?
}

extension FlowValue {
  /// The elements of an async sequence as the input of a group: `["rows": FlowValue.items(of: rows)]`.
  ///
  /// The group asks for an element when it can execute it, at most one ahead. A sequence is iterated once, by one group. An
  /// error of it fails the group.
  ///
  /// - Parameter sequence: The sequence; its iterator is used on the loop's thread.
  /// - Returns: The value.
  public static func items<Elements: AsyncSequence>(
    of sequence: Elements
  ) -> FlowValue where Elements.Element: FlowValueConvertible {
    .opaque(AsyncItems(sequence))
  }
}

/// The elements of an async sequence.
private final class AsyncItems<Elements: AsyncSequence>: ItemSequence
where Elements.Element: FlowValueConvertible {
  private let sequence: Elements

  init(_ sequence: Elements) { self.sequence = sequence }

  var typeName: ByteString { "sequence" }

  func logText(limit: Int) -> ByteString { ByteString("sequence").truncated(to: limit) }

  func matches(typeName: ByteString) -> Bool { typeName == "sequence" }

  func listCount() -> Int? { nil }

  func element(at index: Int) -> FlowValue { .null }

  func plainCopy() -> PlainValue? { nil }

  func write(to stream: ItemStream, of owner: OwnedTasks, on loop: FlowEventLoop) -> AnyFlowTask? {
    let sequence = sequence
    let task = loop.task {
      var iterator = sequence.makeAsyncIterator()
      while let element = try await iterator.next(isolation: #isolation) {
        if stream.hasEnded { return }
        if stream.put(element.flowValue) { continue }
        let hasRoom: Void? = await loop.value { ready in stream.whenRoom { ready(()) } }
        if hasRoom == nil { return }
      }
    }
    owner.add(task)
    return task
  }
}
