@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// How many may hold a limit.
struct LimitSize: Sendable, Equatable {
  let maxConcurrent: Int
  let rate: RateLimit?

  /// The error of a definition with other numbers.
  func problem(of name: ByteString) -> FlowError {
    let count: ByteString? = maxConcurrent == .max ? nil : "max_concurrent = \(maxConcurrent)"
    let rate: ByteString? = rate.map {
      "rate = \($0.count) per \(FlowValue.text(of: $0.period))"
    }
    let numbers = [count, rate].compactMap { $0 }.joined(separator: ", ")
    return .usage("limit '\(name)' is defined with other numbers: \(numbers)")
  }
}

/// A request of code in a worker to the main thread.
enum LimitRequest: Sendable {
  /// `owner` is the job, or the share of a group, whose code wants the limit; 0 if that isn't known.
  case take(request: UInt64, name: ByteString, LimitSize?, owner: UInt64)
  case release(request: UInt64)
}

/// The limits that code in a worker uses: the main thread, which has them all, is asked.
final class WorkerLimits: HostService {
  /// Sends a request to the main thread.
  var onRequest: ((LimitRequest) -> Void)?
  /// The number of the job or group that a run of the worker belongs to; 0 if there is none.
  var owner: ((Run) -> UInt64)?
  /// The limits by their names, each with the numbers that the code has given.
  private var proxies: [ByteString: (limit: Limit, size: LimitSize?)] = [:]
  private var last: UInt64 = 0
  /// Calls that wait for replies: with the reason why there is no such limit, or with nil.
  private var waiting: [UInt64: (ByteString?) -> Void] = [:]

  /// Whether the answer to a request is still to come.
  var isWaiting: Bool { !waiting.isEmpty }

  /// The limit here that represents one of the script.
  func proxy(of name: ByteString, _ size: LimitSize?) -> Result<Limit, FlowError> {
    let known = proxies[name]
    if let size, let other = known?.size, size != other { return .failure(other.problem(of: name)) }
    let limit = known?.limit ?? Limit(name)
    proxies[name] = (limit, known?.size ?? size)
    return .success(limit)
  }

  /// Begins a task when the main thread has let it hold a limit.
  func begin(_ task: SpawnedTask, holding limit: Limit, _ host: ScriptHost) {
    last += 1
    let request = last
    // Until the answer comes, something else holds the only place.
    let place = Limit(limit.name, maxConcurrent: 1)
    let closed = LimitHold([place], on: host.loop) { "the main thread" }
    _ = closed.take {}
    let hold = LimitHold([place], besides: [limit], on: host.loop, within: task.owner) {
      [unowned task] in task.title
    }
    waiting[request] = { [unowned task] problem in
      if let problem { task.failed(.usage(problem)) }
      closed.drop()
    }
    hold.onDrop = { [unowned self] in
      waiting[request] = nil
      closed.drop()
      onRequest?(.release(request: request))
    }
    let number = host.currentOp.flatMap { owner?($0.run) } ?? 0
    onRequest?(
      .take(request: request, name: limit.name, proxies[limit.name]?.size, owner: number))
    task.begin(holding: hold)
  }

  /// The main thread has replied.
  func answer(_ request: UInt64, _ problem: ByteString?) {
    waiting.removeValue(forKey: request)?(problem)
  }
}
