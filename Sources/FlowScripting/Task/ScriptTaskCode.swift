internal import FlowEngine
internal import LuaVM

/// A task whose code is a Lua function: spawned, or a continuation.
typealias ScriptTask = ContinuationTask<Value>

/// The Lua function of a task. It runs as a coroutine, so it may wait.
final class ScriptTaskCode: TaskCode {
  /// What the function gets: arguments, or what the task before has come to.
  enum Input {
    case arguments([LuaValue])
    case task, result, error

    /// What a continuation gets.
    init(_ kind: ContinuationKind) {
      switch kind {
      case .next, .finally: self = .task
      case .nextOnSuccess, .finallyOnSuccess: self = .result
      case .nextOnError: self = .error
      }
    }
  }

  private let host: ScriptHost
  private let function: LuaReference
  private let input: Input
  /// The op in whose code the task was made.
  private let maker: (slot: UInt32, generation: UInt64)?
  /// The task, while the function runs.
  private(set) var task: ScriptTask?
  private var fiber: Fiber?
  private var wasAskedWhenStalled = false

  init(_ host: ScriptHost, _ function: LuaReference, _ input: Input) {
    self.host = host
    self.function = function
    self.input = input
    maker = host.currentOp.map { ($0.slot, $0.generation) }
  }

  /// The op in whose code the task was made, while that goes on.
  var op: OpContext? {
    maker.flatMap { host.loop.context(slot: $0.slot, generation: $0.generation) }
  }

  func run(after source: AnyFlowTask?, in task: ScriptTask) {
    self.task = task
    do {
      fiber = host.runFiber(function, try arguments(source), owner: .task(self))
      guard let fiber else { return }
      task.hold()
      // It was stopped while it ran to its first wait.
      if let error = task.stopError { fiber.cancel(error) }
    } catch {
      self.task = nil
      task.failed(host.flowError(thrown: error, op: nil))
    }
  }

  private func arguments(_ source: AnyFlowTask?) throws -> [LuaValue] {
    switch input {
    case .arguments(let arguments): return arguments
    case .task: return [try source.map { try host.value(of: $0) } ?? .nil]
    case .result: return [try source.map { try host.luaResult(of: $0) } ?? .nil]
    case .error:
      let error = try source.flatMap { try host.error(of: $0) }
      return [try error.map { try host.luaError($0) } ?? .nil]
    }
  }

  /// Takes how the function has ended.
  func ended(_ end: Fiber.End) {
    guard let task else { return }
    self.task = nil
    fiber = nil
    switch end {
    case .returned(let value):
      if let next = host.task(in: value) {
        task.follow(next)
      } else {
        task.returned(Value(value))
      }
    case .failed(let error): task.failed(error)
    }
  }

  func stop(_ error: FlowError) {
    fiber?.cancel(error)
  }

  func stopStalled(_ error: FlowError) -> Bool {
    guard let fiber else { return false }
    if wasAskedWhenStalled { fiber.close(error) } else { fiber.cancel(error) }
    wasAskedWhenStalled = true
    return true
  }

  func result(of task: AnyFlowTask) throws -> Value { try host.result(of: task) }

  func error(of task: AnyFlowTask) -> FlowError? { host.outcomeError(of: task) }
}
