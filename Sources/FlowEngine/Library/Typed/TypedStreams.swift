internal import FlowLoop

/// The items of a stream of a graph, or of a list in its place, in the body of an `async` op.
///
/// ```swift
/// let sum = Op("SumOp", needs: ["rows": "stream<integer>"], gives: ["sum": "integer"]) { context in
///   var sum = 0
///   for try await row in try context.items("rows", as: Int.self) { sum += row }
///   context.set("sum", sum)
/// }
/// ```
///
/// Used on the loop's thread by one task at a time. The iterator throws the error of the op that writes the stream, when that
/// fails, and `CancellationError` when the op is stopped.
package struct StreamItems<Item: FlowValueConvertible>: AsyncSequence {
  private let name: ByteString
  private let input: StreamInput
  private let context: OpContext

  fileprivate init(_ name: ByteString, _ input: StreamInput, _ context: OpContext) {
    self.name = name
    self.input = input
    self.context = context
  }

  /// Gets the items one after another.
  package struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let name: ByteString
    fileprivate let input: StreamInput
    fileprivate let context: OpContext
    fileprivate let loop: FlowEventLoop

    package mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error)
      -> Item?
    {
      if input.isOfStream, context.isOpen { context.notePassedItems() }
      while !input.hasNext {
        var end: (() -> Void)?
        let isReady: Void? = await loop.value { ready in end = input.whenNext { ready(()) } }
        if isReady == nil {
          end?()
          throw CancellationError()
        }
      }
      guard let item = try input.next() else { return nil }
      if let made = Item(flowValue: item.plain) { return made }
      throw FlowError.mismatchedInput(name, item, wanted: ByteString(Item.flowTypeName))
    }
  }

  package func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(name: name, input: input, context: context, loop: context.loop)
  }
}

extension OpContext {
  /// The items of a stream that the op needs: a need of a type such as `stream<integer>`.
  ///
  /// - Parameters:
  ///   - name: The key.
  ///   - type: The type of an item.
  /// - Returns: The items, in order.
  /// - Throws: A `FlowError`, with which the op also fails, when the op declares no such need, or there is no value.
  public func items<Item: FlowValueConvertible>(
    _ name: some FlowText, as type: Item.Type = Item.self
  ) throws(FlowError) -> some AsyncSequence<Item, any Error> {
    let key = bucket.keys.intern(name)
    guard let value = get(key) else { throw failing(bucket.missingInput(key)) }
    guard let input = input(key, value) else {
      throw failing(.usage("<\(name.byteString)> isn't a stream that [\(op.name)] needs"))
    }
    return StreamItems(name.byteString, input, self)
  }

  /// Writes an item of a stream that the op gives: a give of a type such as `stream<integer>`. Waits while the slowest reader
  /// has as many unread items as the graph's `buffer` says.
  ///
  /// - Parameters:
  ///   - name: The key.
  ///   - item: The item.
  /// - Returns: Whether something still reads; otherwise the op may stop.
  /// - Throws: A `FlowError`, with which the op also fails, when it gives no such stream, isn't a step of a graph, or the item
  ///   is of another type; `CancellationError` when the op is stopped.
  @discardableResult
  public nonisolated(nonsending) func emit(
    _ name: some FlowText, _ item: some FlowValueConvertible
  ) async throws -> Bool {
    let value = item.flowValue
    let output: StreamOutput
    switch self.output(bucket.keys.intern(name)) {
    case .success(let found): output = found
    case .failure(let error): throw failing(error)
    }
    if let wanted = output.mismatch(value) {
      throw failing(
        .mismatchedOutput("\(name.byteString)[\(output.next)]", value, wanted: wanted))
    }
    if output.hasRoom {
      output.write(value)
      return output.isRead
    }
    var end: (() -> Void)?
    let isWritten: Void? = await loop.value { done in end = output.write(value) { done(()) } }
    if isWritten == nil {
      end?()
      throw CancellationError()
    }
    return output.isRead
  }
}

/// A stream that an `AsyncTypedOp` reads: `data.rows` are its items, an `AsyncSequence`.
///
/// ```swift
/// struct SumOp: AsyncTypedOp {
///   let rows = ReadStream<Int>("rows")
///   let sum = Output<Int>("sum")
///
///   func run(_ data: OpData<SumOp>) async throws {
///     var sum = 0
///     for try await row in try data.rows { sum += row }
///     data.sum = sum
///   }
/// }
/// ```
public struct ReadStream<Item: FlowValueConvertible>: StreamInputKey, Sendable {
  package let name: ByteString

  /// Declares a stream that must be there, or a list.
  public init(_ name: some FlowText) { self.name = name.byteString }

  package var typeName: String { "stream<\(Item.flowTypeName)>" }
}

/// A stream that an `AsyncTypedOp` writes: `try await data.emit(\.rows, 5)`.
///
/// ```swift
/// struct ReadOp: AsyncTypedOp {
///   let rows = WriteStream<Int>("rows")
///
///   func run(_ data: OpData<ReadOp>) async throws {
///     for row in 1...1000 { try await data.emit(\.rows, row) }
///   }
/// }
/// ```
public struct WriteStream<Item: FlowValueConvertible>: OpKey, Sendable {
  package let name: ByteString

  /// Declares a stream that the op gives.
  public init(_ name: some FlowText) { self.name = name.byteString }

  package var typeName: String { "stream<\(Item.flowTypeName)>" }
}

/// A stream of any type that an op reads.
protocol StreamInputKey: OpKey {}

extension OpData {
  /// The items of a stream that the op reads.
  public subscript<Item>(
    dynamicMember path: KeyPath<Definition, ReadStream<Item>>
  ) -> some AsyncSequence<Item, any Error> {
    get throws { try context.items(definition[keyPath: path].name, as: Item.self) }
  }

  /// Writes an item of a stream; see `OpContext.emit`.
  @discardableResult
  public nonisolated(nonsending) func emit<Item>(
    _ path: KeyPath<Definition, WriteStream<Item>>, _ item: Item
  ) async throws -> Bool {
    try await context.emit(definition[keyPath: path].name, item)
  }
}
