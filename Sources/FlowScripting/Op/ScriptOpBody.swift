internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The body of an op written in Lua, wherever it runs.
protocol LuaOpBody: OpBody {
  /// The function, without the bound arguments.
  var function: LuaReference { get }
  /// A table of the bound arguments; nil without any.
  var arguments: LuaReference? { get }
  var argumentCount: Int { get }
}

/// The body of an op written in Lua: a function that runs as a coroutine on the main loop.
final class ScriptOpBody: LuaOpBody {
  // A Swift program may keep the op longer than the host. The cycle ends when the host is closed.
  private let host: ScriptHost
  private let callback: LuaCallback

  var function: LuaReference { callback.function }
  let arguments: LuaReference?
  let argumentCount: Int
  /// Whether its result is the key of a cache.
  private let isCacheKey: Bool
  /// Whether it may return anything, as a wrapper returns what the wrapped op has returned.
  private let returnsAnything: Bool

  init(
    _ host: ScriptHost, _ function: LuaReference, arguments: LuaReference? = nil,
    argumentCount: Int = 0, isCacheKey: Bool = false, returnsAnything: Bool = false
  ) {
    self.host = host
    self.arguments = arguments
    self.argumentCount = argumentCount
    self.isCacheKey = isCacheKey
    self.returnsAnything = returnsAnything
    callback = LuaCallback(
      function, bound: arguments.map { ($0, argumentCount) }, handle: .first,
      result: isCacheKey ? .value : .userdata)
  }

  /// The function with bound arguments.
  func binding(_ arguments: LuaReference?, count: Int) -> ScriptOpBody {
    ScriptOpBody(
      host, function, arguments: arguments, argumentCount: count, isCacheKey: isCacheKey,
      returnsAnything: returnsAnything)
  }

  /// The function with the arguments that are bound to an op.
  func binding(as op: Op) -> ScriptOpBody {
    guard let body = op.body as? any LuaOpBody else { return self }
    return binding(body.arguments, count: body.argumentCount)
  }

  var mayBeBusy: Bool { true }

  func start(_ context: OpContext) -> CallState {
    let limits = host.limits(context.deadline, grace: host.closeGrace(context.grace))
    // As `ScriptHost.run`, without a closure on the hot path.
    let outer = host.current
    host.current = ScriptHost.Current(op: .passUnretained(context))
    let outcome = callback.start(
      slot: context.slot, generation: context.generation, deadline: limits.deadline,
      grace: limits.grace)
    host.current = outer
    if case .returned(.nil, _) = outcome, !isCacheKey { return .finished }
    switch host.state(after: outcome, of: .op(context)) {
    case .waits(let coroutine):
      let fiber = Fiber(host, coroutine, owner: .op(context))
      context.state = fiber
      fiber.park()
      return .suspended
    case .ended(.returned(let value)):
      if isCacheKey {
        setCacheKey(value, context)
        return .finished
      }
      guard let task = host.task(in: value) else {
        noteDropped(value, context)
        return .finished
      }
      return Self.follow(task, context, host)
    case .ended(.failed(let error)):
      context.fail(error)
      return .finished
    }
  }

  func codeForm() throws -> CodeForm? { try host.codeForm(of: function, arguments: arguments) }

  /// Handles the outcome of an op's coroutine that has waited.
  static func ended(_ end: Fiber.End, _ context: OpContext, _ host: ScriptHost) {
    switch end {
    case .returned(let value):
      let body = context.op.body as? ScriptOpBody
      if let body, body.isCacheKey {
        body.setCacheKey(value, context)
      } else if let task = host.task(in: value) {
        if context.isOpen, follow(task, context, host) == .suspended { return }
      } else {
        body?.noteDropped(value, context)
      }
      context.end()
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

  /// A function that ignores a stop before its first wait is stopped after the grace period.
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

  /// Warns once that a function of a script returns what nobody gets: ops give values by `ctx:set`.
  private func noteDropped(_ value: LuaValue, _ context: OpContext) {
    if case .nil = value { return }
    guard !returnsAnything, host.events.onWarning != nil, let place = host.vm.place(of: function)
    else {
      return
    }
    host.warnOnce(
      """
      warning: \(host.loop.secrets.redacted(context.op.name)) at \(place) returns a value, which is dropped: \
      ctx:set(key, value) gives it
      """)
  }

  /// Sets the key of a cache, which a function has returned.
  private func setCacheKey(_ value: LuaValue, _ context: OpContext) {
    switch value {
    case .boolean, .integer, .number, .string: break
    case .reference(let table) where table.kind == .table: break
    default:
      context.fail(
        FlowError(
          .error,
          """
          the function 'key' of its cache returned \(host.kindName(of: value)): \
          string, number, boolean or table expected
          """))
      return
    }
    context.set(host.loop.keys.intern(CachePolicy.keyName), FlowValue(value))
  }

  /// An op that returns a task settles like that task.
  private static func follow(
    _ task: AnyFlowTask, _ context: OpContext, _ host: ScriptHost
  ) -> CallState {
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
    task.observe(waiting: follower)
    context.run.beginAwaiting(task)
    return .suspended
  }
}

extension ScriptOpBody: LuaCode {
  var codeValues: [LuaValue] {
    [
      .string("function"), .reference(function),
      arguments.map { .reference($0) } ?? .boolean(false),
    ]
  }
}

/// Ends an op when its returned task has ended.
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

  /// The op has been stopped. That stops the task too, if the op has started it.
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

/// The function `key` of a `cache`: a coroutine on the main thread, so it may wait, wherever the op itself runs.
// Unchecked: it is made, used and released on the thread of its host, like the ops that own it.
final class ScriptCacheKey: CacheKeyFunction, @unchecked Sendable {
  let function: ScriptOpBody

  init(_ host: ScriptHost, _ function: LuaReference) {
    self.function = ScriptOpBody(host, function, isCacheKey: true)
  }

  /// The function with the arguments that are bound to the op.
  func body(for op: Op) -> any OpBody { function.binding(as: op) }
}

/// `when` and `delay` of a `retry`, as functions written in Lua: coroutines on the main thread, so they may
/// wait, wherever the op itself runs.
// Unchecked: it is made, used and released on the thread of its host, like the ops that own it.
final class ScriptRetryRule: RetryRule, @unchecked Sendable {
  // A Swift program may keep the op longer than the host. The cycle ends when the host is closed.
  private let host: ScriptHost
  let when: LuaReference?
  let delay: LuaReference?

  init(_ host: ScriptHost, when: LuaReference?, delay: LuaReference?) {
    self.host = host
    self.when = when
    self.delay = delay
  }

  var questions: [RetryQuestion] { (when == nil ? [] : [.when]) + (delay == nil ? [] : [.delay]) }

  func answer(
    _ question: RetryQuestion, _ error: FlowError, attempt: Int, in run: Run,
    completion: CallbackCompletion
  ) -> CallState {
    guard let function = question == .when ? when : delay else { return .finished }
    do {
      let arguments = [try host.luaError(error), .integer(Int64(attempt))]
      completion.state = host.runFiber(
        function, arguments,
        owner: question == .when ? .predicate(run, completion) : .delay(run, completion))
    } catch {
      completion.finish(host.flowError(thrown: error, op: nil))
    }
    return .suspended
  }

  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
    (completion.state as? Fiber)?.cancel(error)
  }

  func place(of question: RetryQuestion) -> ByteString? {
    (question == .when ? when : delay).flatMap { host.vm.place(of: $0) }
  }
}
