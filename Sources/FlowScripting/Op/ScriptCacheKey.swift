internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The function `key` of a `cache`: a coroutine on the main thread, so it may wait, wherever the op itself runs.
// Unchecked: it is made, used and released on the thread of its host, like the ops that own it.
final class ScriptCacheKey: CacheKeyFunction, @unchecked Sendable {
  let function: ScriptOpBody

  init(_ host: ScriptHost, _ function: LuaReference) {
    self.function = ScriptOpBody(host, function, isCacheKey: true)
  }

  /// The function with the arguments that are bound to the op.
  func body(for op: Op) -> any OpBody {
    switch op.body {
    case let body as ScriptOpBody: function.binding(body.arguments, count: body.argumentCount)
    case let body as WorkerOpBody: function.binding(body.arguments, count: body.argumentCount)
    default: function
    }
  }
}
