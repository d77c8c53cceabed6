/// The data of one execution of a typed op: `data.image` reads an input, and `data.url = …` sets an
/// output, which the op declares under these names.
///
/// Inputs keep the values that they had when the op started. An output is stored and logged when it
/// is set; nil removes it. One that can't be encoded fails the op. Confined to the loop's thread, like the context.
///
/// ```swift
/// struct HalveOp: TypedOp {
///   let width = Input<Int>("width")
///   let half = Output<Int>("half")
///
///   func run(_ data: OpData<HalveOp>) { data.half = data.width / 2 }
/// }
/// ```
@dynamicMemberLookup
public struct OpData<Definition: OpDefinition> {
  /// The untyped context of the execution: its run, attempt, cleanups and so on.
  public let context: OpContext
  let definition: Definition
  private let schema: OpSchema
  private let inputs: OpInputs

  init(
    _ definition: Definition, _ schema: OpSchema, _ context: OpContext
  ) throws(FlowError) {
    inputs = try schema.read(context)
    self.definition = definition
    self.schema = schema
    self.context = context
  }

  /// The value of an input.
  public subscript<Content>(dynamicMember path: KeyPath<Definition, OpInput<Content>>) -> Content {
    inputs[definition[keyPath: path]]
  }

  /// The present value of an output.
  public subscript<Content>(
    dynamicMember path: KeyPath<Definition, OpOutput<Content>>
  ) -> Content? {
    get { self[definition[keyPath: path]] }
    nonmutating set { self[definition[keyPath: path]] = newValue }
  }

  /// The value of an input; one that the op doesn't declare ends the process with a sentence.
  package subscript<Content>(key: OpInput<Content>) -> Content { inputs[key] }

  /// The present value of an output.
  package subscript<Content>(key: OpOutput<Content>) -> Content? {
    get {
      context.bucket(reading: schema.key(key.name, in: context.bucket.keys))[key]
    }
    nonmutating set {
      context.set(schema.key(key.name, in: context.bucket.keys), newValue, key)
    }
  }

  /// Adds a line of the op to the log.
  public func log(_ text: some FlowText) { context.log(text) }

  /// Reports the op's progress, in units of its own; `total` is nil when it isn't known.
  package func progress(_ done: Double, of total: Double? = nil) {
    context.progress(done, of: total)
  }

  /// Suspends an `AsyncTypedOp` for some time of the loop's clock.
  ///
  /// - Parameter duration: How long; a duration that isn't positive doesn't wait.
  /// - Throws: `CancellationError`, at once when the op is stopped.
  public nonisolated(nonsending) func sleep(for duration: Duration) async throws {
    try await context.sleep(for: duration)
  }
}

/// The data of one execution of a `ConcurrentTypedOp`, in the form of `OpData`.
///
/// It is a separate value: outputs are stored in the data bucket when the op has succeeded.
///
/// ```swift
/// struct LengthOp: ConcurrentTypedOp {
///   let text = Input<String>("text")
///   let length = Output<Int>("length")
///
///   @concurrent func run(_ data: inout ConcurrentOpData<Self>) async throws {
///     data.length = data.text.count
///   }
/// }
/// ```
@dynamicMemberLookup
public struct ConcurrentOpData<Definition: ConcurrentTypedOp>: Sendable {
  /// The trace at the span of this op, for what it starts; see `OpContext.traceContext`.
  public let traceContext: TraceContext?
  private let definition: Definition
  private let inputs: OpInputs
  private var outputs:
    [(name: ByteString, content: any Sendable, store: @Sendable (OpContext) -> Void)] =
      []
  private let clock: LoopClock

  init(_ definition: Definition, _ inputs: OpInputs, clock: LoopClock, trace: TraceContext?) {
    self.definition = definition
    self.inputs = inputs
    self.clock = clock
    traceContext = trace
  }

  /// Suspends the op's work for some time of the loop's clock, so that virtual time works.
  ///
  /// - Parameter duration: How long; a duration that isn't positive doesn't wait.
  /// - Throws: `CancellationError`, at once when the op is stopped.
  public func sleep(for duration: Duration) async throws {
    try await clock.sleep(until: clock.now.advanced(by: duration))
  }

  /// The value of an input.
  public subscript<Content>(dynamicMember path: KeyPath<Definition, OpInput<Content>>) -> Content {
    inputs[definition[keyPath: path]]
  }

  /// The value that was set for an output; nil before.
  public subscript<Content>(
    dynamicMember path: KeyPath<Definition, OpOutput<Content>>
  ) -> Content? {
    get { self[definition[keyPath: path]] }
    set { self[definition[keyPath: path]] = newValue }
  }

  /// The value of an input; one that the op doesn't declare ends the process with a sentence.
  package subscript<Content>(key: OpInput<Content>) -> Content { inputs[key] }

  /// The value that was set for an output; nil before.
  package subscript<Content>(key: OpOutput<Content>) -> Content? {
    get { outputs.first { $0.name == key.name }?.content as? Content }
    set {
      outputs.removeAll { $0.name == key.name }
      guard let newValue else { return }
      outputs.append(
        (key.name, newValue, { $0.set($0.bucket.keys.intern(key.name), newValue, key) }))
    }
  }

  func store(in context: OpContext) {
    for output in outputs { output.store(context) }
  }
}

extension OpContext {
  /// Stores the content of an output; nil removes it.
  fileprivate func set<Content>(_ key: DataKey, _ content: Content?, _ output: OpOutput<Content>) {
    guard let content else { return set(key, .null) }
    do {
      set(key, try output.form.value(of: content))
    } catch {
      fail(.unencodable(output.name, error))
    }
  }
}
