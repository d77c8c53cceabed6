internal import FlowEngine
internal import LuaVM

/// The body of an op written in Lua: a function that runs as a coroutine on the main loop.
final class ScriptOpBody: OpBody {
  // A Swift program may hold the op longer than the host. The cycle ends when the host is closed.
  private let host: ScriptHost
  private let operation: LuaOperation

  /// The function, without the bound arguments.
  var function: LuaReference { operation.function }
  /// A table of the bound arguments; nil without any.
  let arguments: LuaReference?
  let argumentCount: Int

  init(
    _ host: ScriptHost, _ function: LuaReference, arguments: LuaReference? = nil,
    argumentCount: Int = 0
  ) {
    self.host = host
    self.arguments = arguments
    self.argumentCount = argumentCount
    operation = LuaOperation(function, arguments: arguments, argumentCount: argumentCount)
  }

  var mayBeBusy: Bool { true }

  func start(_ context: OpContext) -> OpProgress {
    let deadline = context.deadline
    let limit = deadline == .max ? 0 : host.watchDeadline(deadline)
    // As `ScriptHost.run`, without a closure on the hot path.
    let outer = host.current
    host.current.task = nil
    host.current.op = .passUnretained(context)
    let progress = operation.start(
      slot: context.slot, generation: context.generation, deadline: limit == .max ? 0 : limit,
      grace: deadline == .max ? 0 : host.closeGrace(context.grace))
    host.current = outer
    switch progress {
    case .done: return .finished
    case .step(let step): return goOn(step, context)
    case .refused(let error):
      context.fail(FlowError(.error, ByteString(error.message), op: context.displayName))
      return .finished
    }
  }

  private func goOn(_ step: LuaStep, _ context: OpContext) -> OpProgress {
    switch step.outcome {
    case .finished:
      if step.resultCount > 0, let task = returnedTask(step) {
        host.vm.release(step.coroutine, finished: true)
        return Self.follow(task, context, host)
      }
      host.vm.release(step.coroutine, finished: true)
      return .finished
    case .parked:
      host.vm.unwatch(step.coroutine)
      let fiber = Fiber(host, step.coroutine, owner: .op(context))
      context.state = fiber
      fiber.park()
      return .suspended
    case .stopped:
      let traceback = host.takeStop(step.coroutine, of: .op(context))
      context.fail(context.expire().located(by: traceback))
      return .finished
    case .failed, .yielded:
      let error = host.takeFailure(step, op: context.displayName)
      host.vm.release(step.coroutine, finished: false)
      context.fail(error)
      return .finished
    }
  }

  /// Takes how the coroutine of an op that has waited ended.
  static func ended(_ end: Fiber.End, _ context: OpContext, _ host: ScriptHost) {
    switch end {
    case .returned(let value):
      if let task = host.task(in: value), context.isOpen {
        if follow(task, context, host) == .finished { context.end() }
      } else {
        context.end()
      }
    case .failed(let error): context.end(error)
    }
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    if let fiber = context.state as? Fiber {
      fiber.cancel(error)
    } else if let follower = context.state as? Follower {
      follower.cancel(error)
    }
  }

  /// A function that goes on regardless, although its first stretch isn't over, is stopped after the
  /// grace period.
  func interrupt(_ context: OpContext, _ error: FlowError) {
    if let fiber = context.state as? Fiber {
      fiber.cancel(error)
      return
    }
    let end = min(
      LuaVM.monotonicTime.later(by: host.busyGrace), host.watchDeadline(context.deadline))
    host.vm.watchOperation(
      slot: context.slot, generation: context.attemptGeneration, deadline: end,
      grace: host.closeGrace(context.grace))
  }

  /// The task that the function returned, if it returned one.
  private func returnedTask(_ step: LuaStep) -> AnyFlowTask? {
    guard let value = try? host.vm.firstResult(step) else { return nil }
    return host.task(in: value)
  }

  /// An op that returns a task finishes when that task does, and as it does.
  private static func follow(
    _ task: AnyFlowTask, _ context: OpContext, _ host: ScriptHost
  ) -> OpProgress {
    task.markObserved()
    if let error = task.foreignError(on: host.loop) {
      context.fail(error)
      return .finished
    }
    if task.isConcluded {
      if let error = host.outcomeError(of: task) { context.fail(error) }
      return .finished
    }
    if WaitCycle.isClosed(by: context.run, awaiting: task) {
      context.fail(.stalled(op: context.displayName))
      return .finished
    }
    let follower = Follower(host, task, context)
    context.state = follower
    task.observe(follower)
    context.run.beginAwaiting(task)
    return .suspended
  }
}

/// Ends an op when the task that it returned has ended.
private final class Follower: TaskObserver {
  private let host: ScriptHost
  private let task: AnyFlowTask
  private var context: OpContext?

  init(_ host: ScriptHost, _ task: AnyFlowTask, _ context: OpContext) {
    self.host = host
    self.task = task
    self.context = context
  }

  var waitingTask: AnyFlowTask? { context?.run }

  func run() { end(host.outcomeError(of: task)) }

  /// The op has been stopped, which stops the task too if the op has started it.
  func cancel(_ error: FlowError) {
    task.unobserve(self)
    end(error)
  }

  private func end(_ error: FlowError?) {
    guard let context else { return }
    self.context = nil
    context.run.endAwaiting(task)
    context.end(error)
  }
}

extension ScriptHost {
  /// The error of a settled task, to pass on: the same table wherever scripts see it.
  func outcomeError(of task: AnyFlowTask) -> FlowError? {
    (try? error(of: task)) ?? task.error
  }
}
