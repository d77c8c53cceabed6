/// The common part of typed ops: declared inputs and outputs, and a configuration.
///
/// Conform to `TypedOp`, `AsyncTypedOp` or `ConcurrentTypedOp`, which determine how the op runs.
/// Inputs and outputs are stored properties of type `Input` and `Output`; other stored properties
/// are the op's arguments.
///
/// ```swift
/// struct ShrinkOp: TypedOp {
///   let width = Input<Int>("width")
///   let half = Output<Int>("half")
///   var configuration: OpConfiguration { OpConfiguration(doc: "Halves an image.") }
///
///   func run(_ data: OpData<Self>) { data.half = data.width / 2 }
/// }
/// ```
public protocol OpDefinition: OpConvertible {
  /// Its name and policies; by default the name of the type, and no policies.
  var configuration: OpConfiguration { get }
}

extension OpDefinition {
  /// An input, as its ops declare it: `let url = Input<String>("url")`.
  public typealias Input<Content: Sendable> = OpInput<Content>
  /// An output, as its ops declare it: `let size = Output<Int>("size")`.
  public typealias Output<Content: Sendable> = OpOutput<Content>
}

/// The name, policies and primary keys of a typed op.
///
/// ```swift
/// let configuration = OpConfiguration(
///   doc: "Halves an image.", retry: RetryPolicy(attempts: 3), timeout: .seconds(5))
/// ```
public struct OpConfiguration: Sendable {
  /// The name in lines and errors; nil for the name of its type.
  package var name: ByteString?
  /// The purpose of the op, for people.
  package var doc: ByteString?
  /// The key under which a group passes an item; nil for the only input.
  package var primaryInput: ByteString?
  /// The key that a group collects; nil for the only output.
  package var primaryOutput: ByteString?
  /// How often and when it is retried; nil for never.
  package var retry: RetryPolicy?
  /// The time that an attempt may take; nil for no limit.
  package var timeout: Duration?
  /// The time that its cleanups have after a stop; nil for the loop's `cleanupGrace`.
  package var grace: Duration?
  /// Where it was made, for the sentence about a wrong timeout.
  let (file, line): (StaticString, UInt)

  /// Makes a configuration; see the properties.
  public init(
    name: (any FlowText)? = nil, doc: (any FlowText)? = nil,
    primaryInput: (any FlowText)? = nil, primaryOutput: (any FlowText)? = nil,
    retry: RetryPolicy? = nil, timeout: Duration? = nil,
    grace: Duration? = nil, file: StaticString = #fileID, line: UInt = #line
  ) {
    (self.file, self.line) = (file, line)
    self.name = name?.byteString
    self.doc = doc?.byteString
    self.primaryInput = primaryInput?.byteString
    self.primaryOutput = primaryOutput?.byteString
    self.retry = retry
    self.timeout = timeout
    self.grace = grace
  }
}

extension OpDefinition {
  public var configuration: OpConfiguration { OpConfiguration() }

  /// The inputs and outputs: all stored properties of these types, looked up once for each op that is made.
  var declaredKeys: [any OpKey] {
    Mirror(reflecting: self).children.compactMap { $0.value as? any OpKey }
  }
}

/// An op as a Swift type, with declared inputs and outputs.
///
/// ```swift
/// struct GreetOp: TypedOp {
///   let name = Input<String>("name")
///   let greeting = Output<String>("greeting")
///
///   func run(_ data: OpData<GreetOp>) throws {
///     data.greeting = "Hello, \(data.name)!"
///   }
/// }
/// ```
///
/// One value serves all executions, including concurrent ones: the data of an execution is in
/// `data`.
public protocol TypedOp: OpDefinition {
  /// Does the op's work, on the loop's thread; must not block. An error it throws fails the op.
  func run(_ data: OpData<Self>) throws
}

/// An op as a Swift type whose work may wait; see `TypedOp`, and `Op.init` for how `async` bodies run.
///
/// ```swift
/// struct FetchOp: AsyncTypedOp {
///   let page = Input<Int>("page")
///   let text = Output<String>("text")
///
///   func run(_ data: OpData<FetchOp>) async throws {
///     try await data.sleep(for: .seconds(1))
///     data.text = "page \(data.page)"
///   }
/// }
/// ```
public protocol AsyncTypedOp: OpDefinition {
  /// Does the op's work, always on the loop's thread. An error it throws fails the op.
  nonisolated(nonsending) func run(_ data: OpData<Self>) async throws
}

/// An op as a Swift type that computes for long: it runs off the loop, in parallel with everything
/// else, on threads for computing, one for each core.
///
/// Its inputs are read before it starts, and its outputs are stored in the data bucket when it has
/// succeeded. A stop of the op cancels the task, which has to check `Task.isCancelled`.
///
/// ```swift
/// struct SumOp: ConcurrentTypedOp {
///   let numbers = Input<[Int]>("numbers")
///   let sum = Output<Int>("sum")
///
///   @concurrent func run(_ data: inout ConcurrentOpData<SumOp>) async throws {
///     data.sum = data.numbers.reduce(0, +)
///   }
/// }
/// ```
public protocol ConcurrentTypedOp: OpDefinition, Sendable {
  /// Does the op's work, on any thread. An error it throws fails the op.
  @concurrent func run(_ data: inout ConcurrentOpData<Self>) async throws
}

extension TypedOp {
  public func makeOp() -> Op { Op(self, OpSchema(self)) { TypedBody(self, $0) } }
}

extension AsyncTypedOp {
  public func makeOp() -> Op { Op(self, OpSchema(self)) { AsyncTypedBody(self, $0) } }
}

extension ConcurrentTypedOp {
  public func makeOp() -> Op {
    Op(self, OpSchema(self)) { schema in
      ConcurrentBody(
        take: {
          try ConcurrentOpData(
            self, schema.read($0), clock: $0.loop.loopClock, trace: $0.traceContext)
        },
        work: { data in
          var data = data
          try await self.run(&data)
          return data
        },
        give: { data, context in data.store(in: context) })
    }
  }
}

extension Op {
  convenience init(
    _ definition: some OpDefinition, _ schema: OpSchema, body: (OpSchema) -> any OpBody
  ) {
    let configuration = definition.configuration
    self.init(
      name: schema.name, doc: configuration.doc, needs: schema.needs, gives: schema.gives,
      primaryInput: configuration.primaryInput, primaryOutput: configuration.primaryOutput,
      policy: .make(
        nil, retry: configuration.retry, timeout: configuration.timeout,
        grace: configuration.grace, file: configuration.file, line: configuration.line),
      body: body(schema))
  }
}

/// The body of a `TypedOp`.
final class TypedBody<Definition: TypedOp>: OpBody {
  private let definition: Definition
  private let schema: OpSchema

  init(_ definition: Definition, _ schema: OpSchema) {
    self.definition = definition
    self.schema = schema
  }

  func start(_ context: OpContext) -> CallState {
    do {
      try definition.run(OpData(definition, schema, context))
    } catch {
      context.fail(.from(error, on: context.loop))
    }
    return .finished
  }
}

/// The body of an `AsyncTypedOp`.
final class AsyncTypedBody<Definition: AsyncTypedOp>: AsyncBody {
  private let definition: Definition
  private let schema: OpSchema

  init(_ definition: Definition, _ schema: OpSchema) {
    self.definition = definition
    self.schema = schema
  }

  override func makeTask(_ context: OpContext, on loop: FlowEventLoop) -> OpTask {
    TypedTask(definition, schema, context, on: loop)
  }
}

private final class TypedTask<Definition: AsyncTypedOp>: OpTask, @unchecked Sendable {
  private let definition: Definition
  private let schema: OpSchema

  init(
    _ definition: Definition, _ schema: OpSchema, _ context: OpContext, on loop: FlowEventLoop
  ) {
    self.definition = definition
    self.schema = schema
    super.init(context, on: loop)
  }

  override nonisolated(nonsending) func execute(_ context: OpContext) async throws {
    try await definition.run(OpData(definition, schema, context))
  }
}
