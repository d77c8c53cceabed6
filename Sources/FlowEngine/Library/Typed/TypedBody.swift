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
      context.fail(.from(error))
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

  override func makeTask(_ context: OpContext, on loop: EventLoop) -> OpTask {
    TypedTask(definition, schema, context, on: loop)
  }
}

private final class TypedTask<Definition: AsyncTypedOp>: OpTask, @unchecked Sendable {
  private let definition: Definition
  private let schema: OpSchema

  init(
    _ definition: Definition, _ schema: OpSchema, _ context: OpContext, on loop: EventLoop
  ) {
    self.definition = definition
    self.schema = schema
    super.init(context, on: loop)
  }

  override nonisolated(nonsending) func execute(_ context: OpContext) async throws {
    try await definition.run(OpData(definition, schema, context))
  }
}
