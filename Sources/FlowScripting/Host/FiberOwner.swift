@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The owner of a coroutine: it limits the coroutine's time and is notified of its outcome.
enum FiberOwner {
  /// The code of an op.
  case op(OpContext)
  /// A cleanup of an op.
  case cleanup(OpContext, CallbackCompletion)
  /// A callback of a flow.
  case callback(Run, CallbackCompletion)
  /// The predicate of a case.
  case predicate(Run, CallbackCompletion)
  /// The function that decides when an op is retried.
  case delay(Run, CallbackCompletion)
  /// A function that the engine needs at once: a predicate of a declaration, or a function of a group.
  case check(CheckingExecution)
  /// A function of a machine.
  case machine(MachineCall, MachinePart)
  /// The function of a task.
  case task(ScriptTask)

  /// The deadline of a busy coroutine, on the loop's clock; `.max` for none.
  var deadline: Int64 {
    switch self {
    case .op(let context): context.deadline
    case .cleanup(_, let completion), .callback(_, let completion),
      .predicate(_, let completion), .delay(_, let completion):
      completion.deadline
    case .check(let check): check.deadline
    case .machine(let call, _): call.deadline
    case .task(let code): code.ownerDeadline
    }
  }

  /// The error of a coroutine that was stopped at the deadline.
  func expire() -> FlowError {
    switch self {
    case .op(let context): context.expire()
    case .cleanup(_, let completion), .callback(_, let completion),
      .predicate(_, let completion), .delay(_, let completion):
      completion.expire()
    case .check(let check): check.expire()
    case .machine(let call, _): call.expire()
    case .task(let code): code.expire()
    }
  }

  /// Whether nothing is raised in it; signals may still limit its time.
  var isCleanup: Bool {
    switch self {
    case .cleanup: true
    case .callback(let run, _): run.isCallingBack
    default: false
    }
  }

  /// Whether its `__close`s have a grace after a stop: a cleanup is stopped at the end of its
  /// grace.
  var hasGrace: Bool {
    switch self {
    case .cleanup: false
    case .callback(let run, _): !run.isCallingBack
    default: true
    }
  }

  /// The op whose body it belongs to.
  var context: OpContext? {
    switch self {
    case .op(let context): context
    case .machine(let call, _): call.context
    default: nil
    }
  }

  /// The run around its code that nothing of another run has started; nil outside of runs.
  var outermostRun: AnyFlowTask? {
    switch self {
    case .op(let context), .cleanup(let context, _): context.run.outermostOwner
    case .callback(let run, _), .predicate(let run, _), .delay(let run, _): run.outermostOwner
    case .check(let check): check.run.outermostOwner
    case .machine(let call, _): call.context?.run.outermostOwner
    case .task(let code): code.tasksAround?.outermostRun
    }
  }

  /// The length of that grace; nil for the default.
  var grace: Duration? {
    if case .task(let code) = self { return code.op?.grace }
    return context?.grace
  }

  /// The op that errors are attributed to.
  var opName: ByteString? { context?.displayName }

  /// Notifies the owner of the coroutine's outcome.
  func finish(_ end: Fiber.End, _ host: ScriptHost) {
    switch self {
    case .op(let context): ScriptOpBody.ended(end, context, host)
    case .cleanup(_, let completion), .callback(_, let completion):
      switch end {
      case .returned: completion.finish(nil)
      case .failed(let error): completion.finish(error)
      }
    case .predicate(_, let completion):
      switch end {
      case .returned(let value): completion.answer(value.isTruthy)
      case .failed(let error): completion.finish(error)
      }
    case .delay(_, let completion):
      switch end {
      case .returned(.integer(let seconds)): completion.answer(seconds: Double(seconds))
      case .returned(.number(let seconds)): completion.answer(seconds: seconds)
      case .returned(let value): completion.answer(otherKind: ByteString(host.kindName(of: value)))
      case .failed(let error): completion.finish(error)
      }
    // Its caller reads the outcome.
    case .check: break
    case .machine(let call, let part):
      switch end {
      case .returned(let value):
        (call.logic as? ScriptMachineLogic)?.finish(value, part, call)
      case .failed(let error): call.finish(.failed(error))
      }
    case .task(let code): code.ended(end)
    }
  }
}
