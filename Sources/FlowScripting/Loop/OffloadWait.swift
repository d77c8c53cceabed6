internal import FlowEngine
internal import Glibc
@_spi(Scripting) internal import LuaVM

extension ScriptHost {
  /// Performs `work` on a helper thread while the script waits, and returns the results that `answer`
  /// makes of its result. The script's other code continues meanwhile, and a virtual clock stands still.
  ///
  /// Work that takes long looks at its `Cancellation`, which is requested when the waiting code is
  /// stopped; its result is then dropped. Its error is raised at the script's line. `failed` is called in
  /// both cases, on the thread of the host. `memory` is where the result counts until the script has it.
  func offload<Result: Sendable>(
    _ call: LuaCall, in memory: CollectedBytes? = nil,
    _ work: @escaping @Sendable (Cancellation) throws(SystemError) -> Result,
    failed: (() -> Void)? = nil,
    answer: @escaping (LuaCall, Result) throws -> LuaAnswer
  ) throws -> LuaAnswer {
    try call.wait(OffloadWait(self, memory, work, failed: failed, answer: answer))
  }
}

/// Waits for the result of work on a helper thread.
private final class OffloadWait<Success: Sendable>: LuaWait {
  private let host: ScriptHost
  private let memory: CollectedBytes?
  private let cancellation = Cancellation()
  private let answer: (LuaCall, Success) throws -> LuaAnswer
  private let failed: (() -> Void)?
  private var result: Result<Success, SystemError>?

  override var subject: String { "helper thread" }

  init(
    _ host: ScriptHost, _ memory: CollectedBytes?,
    _ work: @escaping @Sendable (Cancellation) throws(SystemError) -> Success,
    failed: (() -> Void)?,
    answer: @escaping (LuaCall, Success) throws -> LuaAnswer
  ) {
    self.host = host
    self.memory = memory
    self.failed = failed
    self.answer = answer
    super.init()
    host.loop.offload { [cancellation] in
      // It may have waited for a thread.
      if cancellation.isRequested { return .failure(SystemError(code: ECANCELED)) }
      do throws(SystemError) { return .success(try work(cancellation)) } catch {
        return .failure(error)
      }
    } then: { [self] (result: Result<Success, SystemError>) in
      self.result = result
      ready()
    }
  }

  // A host that is closed drops its waits.
  deinit { cancellation.request() }

  /// The thread stops when it next looks; its result is dropped.
  override func abandon() {
    cancellation.request()
    failed?()
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    switch result {
    case .success(let value): return try answer(call, value)
    case .failure(let error):
      failed?()
      if error.isLackOfMemory { throw LuaError(.memory, LuaVM.memoryError) }
      throw host.raise(error, at: call.position)
    case nil: throw host.raise(.cancelled())
    }
  }
}
