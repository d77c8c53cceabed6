internal import FlowEngine
internal import LuaVM

/// A coroutine of a script that waits: an op's, or a callback's. It goes on when its wait is ready.
final class Fiber: LoopJob {
  /// How a fiber ended.
  enum End {
    case returned(LuaValue)
    case failed(FlowError)
  }

  private let host: ScriptHost
  private let coroutine: LuaCoroutine
  private let op: ByteString?
  private let completion: (End) -> Void
  /// The wait: it must live until the coroutine has taken its results.
  private var wait: LuaWait?
  /// Set once the fiber has been asked to end: raised at this wait and at every further one.
  private var cancellation: FlowError?
  /// When a fiber that goes on regardless is closed: a time of the monotonic clock, also where the
  /// loop's own clock is virtual, since it is a script's own running time that is limited.
  private var graceEnd: Int64 = .max

  init(
    _ host: ScriptHost, _ coroutine: LuaCoroutine, op: ByteString?,
    completion: @escaping (End) -> Void
  ) {
    self.host = host
    self.coroutine = coroutine
    self.op = op
    self.completion = completion
  }

  /// Waits for what the coroutine has parked on.
  func park() {
    guard let wait = host.vm.parkedWait() else {
      end(.failed(FlowError(.error, "a coroutine parked without a wait", op: op)), finished: false)
      return
    }
    self.wait = wait
    if let cancellation {
      if LuaVM.monotonicTime >= graceEnd {
        wait.abandon()
        end(.failed(cancellation), finished: false)
        return
      }
      wait.fail(host.raise(cancellation))
    }
    if wait.isReady {
      host.loop.enqueue(self)
    } else {
      wait.onReady = { [self] in host.loop.enqueue(self) }
    }
  }

  /// Raises an error at the wait, and at all later ones. A coroutine that goes on regardless is closed
  /// after the grace period, even when it is busy.
  func cancel(_ error: FlowError) {
    guard cancellation == nil else { return }
    cancellation = error
    graceEnd = LuaVM.monotonicTime + host.gracePeriod
    wait?.fail(host.raise(error))
  }

  func run() {
    if cancellation != nil {
      host.vm.watch(coroutine, deadline: graceEnd, grace: host.gracePeriod)
    }
    let step = host.vm.resume(coroutine)
    if cancellation != nil { host.vm.unwatch(coroutine) }
    // Its results have been taken; the next wait, if any, is another one.
    wait = nil
    switch step.outcome {
    case .parked: park()
    case .finished:
      let result = Result { try host.vm.firstResult(step) }
      host.vm.release(coroutine, finished: true)
      finish(result.mapError { host.flowError(thrown: $0, op: op) }.end)
    case .failed, .yielded, .stopped:
      end(.failed(host.takeFailure(step, op: op)), finished: false)
    }
  }

  private func end(_ end: End, finished: Bool) {
    host.vm.release(coroutine, finished: finished)
    finish(end)
  }

  private func finish(_ end: End) {
    completion(cancellation.map { .failed($0) } ?? end)
  }
}

extension Result where Success == LuaValue, Failure == FlowError {
  fileprivate var end: Fiber.End {
    switch self {
    case .success(let value): .returned(value)
    case .failure(let error): .failed(error)
    }
  }
}

extension ScriptHost {
  /// Why a coroutine ended that neither returned nor waits. The coroutine is still to be released.
  func takeFailure(_ step: LuaStep, op: ByteString?) -> FlowError {
    switch step.outcome {
    case .failed: return flowError(of: vm.failure(step.coroutine), op: op)
    case .yielded:
      return FlowError(.usage, "attempt to yield from outside a coroutine", op: op)
    default:
      return FlowError(.error, "stopped", op: op)
    }
  }

  /// A Swift error as an engine error.
  func flowError(thrown error: any Error, op: ByteString?) -> FlowError {
    (error as? FlowError) ?? FlowError(.error, ByteString(describing: error), op: op)
  }

  /// Runs a function as a coroutine that may wait; `completion` is called once, perhaps at once.
  func runFiber(
    _ function: LuaReference, _ arguments: [LuaValue],
    completion: @escaping (Fiber.End) -> Void
  ) {
    do {
      let step = try vm.start(function, arguments)
      switch step.outcome {
      case .parked:
        Fiber(self, step.coroutine, op: nil, completion: completion).park()
      case .finished:
        let value = try vm.firstResult(step)
        vm.release(step.coroutine, finished: true)
        completion(.returned(value))
      case .failed, .yielded, .stopped:
        let error = takeFailure(step, op: nil)
        vm.release(step.coroutine, finished: false)
        completion(.failed(error))
      }
    } catch {
      completion(.failed(flowError(thrown: error, op: nil)))
    }
  }
}
