@_spi(Scripting) internal import FlowLoop

/// Items that a writer passes to readers, a few at a time: each reader gets every item, and the slowest one holds the writer
/// back. Confined to its loop's thread.
package final class ItemStream {
  /// How many may be unread before the writer waits.
  private let limit: Int

  // Unchecked exclusivity: see HotPath.swift.

  /// The items that a reader hasn't read.
  @exclusivity(unchecked) private var items = FIFO<FlowValue>()
  /// How many all readers have read.
  @exclusivity(unchecked) private var readByAll = 0
  /// How many items were written.
  @exclusivity(unchecked) package private(set) var count = 0
  /// Whether no item follows.
  @exclusivity(unchecked) private(set) var hasEnded = false
  /// Why the writer has failed.
  @exclusivity(unchecked) private(set) var error: FlowError?
  /// Whether its writer wasn't executed, so that it has no items although there were some.
  @exclusivity(unchecked) var isLost = false
  /// The readers that haven't ended.
  @exclusivity(unchecked) private var readers: ContiguousArray<ItemReader> = []
  /// Writers that wait, each for room for one item.
  @exclusivity(unchecked) private var waiting = FIFO<RoomWaiter>()
  @exclusivity(unchecked) private var isWaking = false
  /// All items, if a list is made of them at the end.
  @exclusivity(unchecked) private var all: ContiguousArray<FlowValue>?
  private let account: MemoryAccount?
  /// The bytes that are counted there.
  @exclusivity(unchecked) private var held = 0

  init(limit: Int, collects: Bool = false, account: MemoryAccount? = nil) {
    self.limit = limit
    self.account = account
    if collects { all = [] }
  }

  deinit { account?.release(held) }

  /// Adds a reader, which gets the items from now on.
  func makeReader() -> ItemReader {
    let reader = ItemReader(of: self, from: count)
    readers.append(reader)
    return reader
  }

  /// Whether anything still takes the items.
  package var isRead: Bool { !readers.isEmpty || all != nil }

  /// How many items the slowest reader hasn't read.
  var unread: Int { items.count }

  /// Whether the writer may continue with another item.
  package var hasRoom: Bool { unread < limit || readers.isEmpty }

  /// How many more results may be begun, while others are under way, so that no more than one too many is unread.
  func roomForResults(besides begun: Int) -> Int {
    readers.isEmpty ? .max : limit + 1 - min(unread + begun, limit + 1)
  }

  /// Adds an item.
  package func put(_ item: FlowValue) {
    if hasEnded { return }
    count += 1
    if all != nil || !readers.isEmpty { hold(item) }
    all?.append(item)
    if readers.isEmpty { return readByAll = count }
    items.append(item)
    // One that has unread items was notified.
    for reader in readers where reader.position == count - 1 { reader.onChange?() }
  }

  /// Has a function called once, when there is room: a writer that waits longer comes first. The function adds an item, or has
  /// one added soon.
  @discardableResult
  package func whenRoom(_ body: @escaping () -> Void) -> RoomWaiter {
    let waiter = RoomWaiter(body)
    waiting.append(waiter)
    return waiter
  }

  /// A writer waits no longer.
  package func stopWaiting(_ waiter: RoomWaiter) { waiting.removeAll { $0 === waiter } }

  /// No item follows, perhaps because the writer has failed; if it hasn't, the items for which writers wait come first.
  func end(_ error: FlowError? = nil) {
    guard !hasEnded else { return }
    if error == nil { while let waiter = waiting.popFirst() { waiter.body() } }
    hasEnded = true
    self.error = error
    for reader in readers { reader.onChange?() }
  }

  /// All items, for the list of them; they are the caller's.
  func takeAll() -> ContiguousArray<FlowValue>? { all.take() }

  // MARK: For readers

  /// The item with a number; nil if it hasn't been written.
  fileprivate func item(_ number: Int) -> FlowValue? {
    items.element(number - readByAll)
  }

  /// A reader has read an item, or has ended.
  fileprivate func drop() {
    let least =
      readers.count == 1 ? readers[0].position : readers.reduce(count) { min($0, $1.position) }
    guard least > readByAll else { return wake() }
    if account != nil, all == nil {
      for place in 0..<least - readByAll { items.element(place).map { release($0) } }
    }
    items.removeFirst(least - readByAll)
    readByAll = least
    wake()
  }

  fileprivate func remove(_ reader: ItemReader) {
    readers.removeAll { $0 === reader }
    drop()
  }

  private func wake() {
    if isWaking || waiting.isEmpty { return }
    isWaking = true
    while hasRoom, let waiter = waiting.popFirst() { waiter.body() }
    isWaking = false
  }

  // MARK: Memory

  private static func size(_ item: FlowValue) -> Int {
    let stride = MemoryLayout<FlowValue>.stride
    guard case .bytes(let bytes) = item.plain else { return stride }
    return stride + bytes.count
  }

  private func hold(_ item: FlowValue) {
    guard let account else { return }
    held += Self.size(item)
    account.change(by: Self.size(item))
  }

  private func release(_ item: FlowValue) {
    held -= Self.size(item)
    account?.change(by: -Self.size(item))
  }
}

/// A writer that waits for room in a stream.
package final class RoomWaiter {
  fileprivate let body: () -> Void

  fileprivate init(_ body: @escaping () -> Void) { self.body = body }
}

/// One reader of a stream, as a value of the data of the op or group that reads.
package final class ItemReader: StreamValue {
  /// The result of a read.
  package enum Part {
    case item(FlowValue)
    /// No item follows.
    case end
    /// The writer has failed.
    case failed(FlowError)
    /// The op that reads has ended before the stream.
    case closed
    /// `onChange` is called when there is more.
    case pending
  }

  private let stream: ItemStream
  /// How many items it has read.
  @exclusivity(unchecked) package private(set) var position: Int
  /// Called when there is an item, or when the stream has ended.
  @exclusivity(unchecked) package var onChange: (() -> Void)?
  /// Whether nobody reads any more.
  @exclusivity(unchecked) package private(set) var isClosed = false

  fileprivate init(of stream: ItemStream, from position: Int) {
    self.stream = stream
    self.position = position
  }

  /// Takes the next item.
  package func next() -> Part {
    if let error = stream.error { return .failed(error) }
    if isClosed { return stream.hasEnded && position == stream.count ? .end : .closed }
    if let item = stream.item(position) {
      position += 1
      stream.drop()
      return .item(item)
    }
    return stream.hasEnded ? .end : .pending
  }

  /// Takes the next item; nil if there is none now.
  func nextItem() -> FlowValue? {
    guard case .item(let item) = next() else { return nil }
    return item
  }

  /// Whether `next` has a result.
  package var hasNext: Bool { isClosed || stream.hasEnded || position < stream.count }

  /// Whether that is an item.
  var hasItem: Bool { stream.error == nil && !isClosed && position < stream.count }

  /// Why the writer has failed.
  var failure: FlowError? { stream.error }

  /// Whether the writer wasn't executed, so that nobody knows the items.
  var isLost: Bool { stream.isLost }

  /// How many items the writer has written.
  var written: Int { stream.count }

  /// Reads no more; code that waits for an item is notified.
  package func close() {
    guard !isClosed else { return }
    isClosed = true
    stream.remove(self)
    onChange.take()?()
  }

  package var typeName: ByteString { "stream" }
  package func logText(limit: Int) -> ByteString { ByteString("stream").truncated(to: limit) }
  package func matches(typeName: ByteString) -> Bool { typeName == "stream" }
  package func listCount() -> Int? { nil }
  package func element(at index: Int) -> FlowValue { .null }
  package func plainCopy() -> PlainValue? { nil }
}

/// Calls for an item, until a deadline, once the one before has come; returns nil if the item comes later, or if none follows.
package typealias ItemCall = (_ deadline: Int64) -> FlowValue?

/// A value that gives items one after another, such as an iterator.
package protocol ItemSequence: OpaqueValue {
  /// Prepares calls for its items.
  ///
  /// - Parameters:
  ///   - owner: The tasks to which its code belongs.
  ///   - loop: The loop of the group.
  ///   - take: Called with each item that comes after the call for it has returned.
  /// - Returns: The task, which ends after the last item or with an error of the code, and the call for the next item; nil
  ///   if it isn't such a value.
  func calls(
    of owner: OwnedTasks, on loop: FlowEventLoop, _ take: @escaping (FlowValue) -> Void
  ) -> (task: AnyFlowTask, call: ItemCall)?
}

/// The iterators of a run whose items groups take, or have taken without executing all: the items come once, so that another
/// group would leave out some.
struct IteratorUses {
  private var uses: [ObjectIdentifier: (iterator: any OpaqueValue, problem: ByteString)] = [:]

  /// Why a group can't take the items of a value; nil when it can.
  func problem(of value: FlowValue) -> ByteString? {
    guard !uses.isEmpty, case .opaque(let iterator) = value else { return nil }
    return uses[ObjectIdentifier(iterator)]?.problem
  }

  /// A group begins to take the items.
  mutating func begin(_ value: FlowValue, _ key: ByteString, of op: ByteString) {
    note(
      value,
      "<\(key)> is an iterator whose items the group of [\(op)] takes: each group needs an iterator of its own"
    )
  }

  /// A group that has failed has taken items.
  mutating func fail(_ value: FlowValue, _ key: ByteString, count: Int) {
    note(
      value,
      "<\(key)> is an iterator of which an attempt that failed has taken \(count) items: set a new one in a step that is tried again, too"
    )
  }

  /// A group has taken all that it wanted.
  mutating func end(_ value: FlowValue) {
    if case .opaque(let iterator) = value { uses[ObjectIdentifier(iterator)] = nil }
  }

  private mutating func note(_ value: FlowValue, _ problem: ByteString) {
    if case .opaque(let iterator) = value {
      uses[ObjectIdentifier(iterator)] = (iterator, problem)
    }
  }
}

extension FlowValue {
  /// The elements of an async sequence as the input of a group: `["rows": FlowValue.items(of: rows)]`.
  ///
  /// The group asks for elements while others execute: at most `maxConcurrent` + 1 of them haven't ended. A sequence is
  /// iterated once, by one group. An error of it fails the group.
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

  func calls(
    of owner: OwnedTasks, on loop: FlowEventLoop, _ take: @escaping (FlowValue) -> Void
  ) -> (task: AnyFlowTask, call: ItemCall)? {
    let sequence = sequence
    let calls = AsyncCalls()
    let task = loop.task {
      var iterator = sequence.makeAsyncIterator()
      while await loop.value({ ready in calls.whenCalled { ready(true) } }) != nil,
        let element = try await iterator.next(isolation: #isolation)
      {
        take(element.flowValue)
      }
    }
    owner.add(task)
    return (
      task,
      { _ in
        calls.call()
        return nil
      }
    )
  }
}

/// The calls for the elements of an async sequence.
private final class AsyncCalls {
  private var isCalled = false
  private var ready: (() -> Void)?

  func call() {
    isCalled = true
    check()
  }

  func whenCalled(_ ready: @escaping () -> Void) {
    self.ready = ready
    check()
  }

  private func check() {
    guard isCalled, let ready = ready.take() else { return }
    isCalled = false
    ready()
  }
}
