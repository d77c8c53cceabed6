internal import FlowEngine
@_spi(Scripting) internal import LuaVM

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
}
