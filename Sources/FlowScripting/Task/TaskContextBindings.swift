internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The methods of the result of `flow.context()`.
extension ScriptHost {
  static var taskContextMethods: LuaFields<BoundMethod> {
    [
      "set_result": settling(
        "set_result", isTry: false,
        direct: { host, call in
          guard let context = call.object(host.types.taskContext), call.hasValue,
            context.trySetValue(FlowValue(call.value))
          else { return call.pass() }
          return call.answer()
        }
      ) { host, context, arguments in
        context.trySetResult(FlowValue(try arguments.call.value(2)))
      },
      "try_set_result": settling("try_set_result", isTry: true) { host, context, arguments in
        context.trySetResult(FlowValue(try arguments.call.value(2)))
      },
      "set_error": settling("set_error", isTry: false) { host, context, arguments in
        context.trySetError(try host.error(arguments, 1))
      },
      "try_set_error": settling("try_set_error", isTry: true) { host, context, arguments in
        context.trySetError(try host.error(arguments, 1))
      },
      "cancel": settling("cancel", isTry: false) { _, context, _ in context.tryCancel() },
      "try_cancel": settling("try_cancel", isTry: true) { _, context, _ in context.tryCancel() },
    ]
  }

  private static func settling(
    _ name: String, isTry: Bool, direct: BoundDirectFunction? = nil,
    _ settle: @escaping (ScriptHost, FlowContext<FlowValue>, Arguments) throws -> Bool
  ) -> BoundMethod {
    BoundMethod(direct: direct) { host, call in
      let arguments = Arguments(host, call, method: name)
      guard let context = call.object(1, host.types.taskContext) else {
        throw arguments.wrongSelf("context")
      }
      let isFirst = try settle(host, context, arguments)
      if isTry { return call.answer(.boolean(isFirst)) }
      if !isFirst {
        throw host.usage(call, FlowContext<FlowValue>.settledMessage.description)
      }
      return call.answer()
    }
  }

  static func taskContextProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let context = call.object(1, host.types.taskContext) else {
      throw Arguments(host, call, method: "__index").wrongSelf("context")
    }
    guard call.bytes(2) == "task" else { return call.answer(.nil) }
    return call.answer(context.task, host.types.task)
  }
}
