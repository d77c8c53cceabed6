@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Code and waits that have so many seconds: `flow.within`, and `task:await { timeout = … }`.
enum TimedWaits {
  static func install(in host: ScriptHost) {
    host.define("within") { host, call in
      let arguments = Arguments(host, call, "within")
      let seconds = try arguments.seconds(1)
      if seconds == 0 {
        throw arguments.wrong(1, "a finite number of seconds, greater than 0, expected, got 0")
      }
      let function = try arguments.function(2)
      return try LimitedWait.begin(call, function, host) { spawned in
        spawned.limit(to: Duration(clampingSeconds: seconds))
        spawned.begin()
      }
    }
  }

  /// The limit in `{ timeout = … }`; nil for none.
  static func limit(_ arguments: Arguments) throws -> Duration? {
    if arguments.isNil(1) { return nil }
    return try arguments.options(1, known: ["timeout"]).duration("timeout", orZero: false)
  }
}

/// Waits for a task and stops it when the time is over. It ends with the task, whose cleanups have their time.
final class StoppingWait: TaskWait {
  private let host: ScriptHost
  private let limit: Duration
  private var isOver = false

  init(_ host: ScriptHost, _ task: AnyFlowTask, _ limit: Duration) {
    self.host = host
    self.limit = limit
    // It ends by itself, so that it isn't a wait of a task for itself.
    super.init(task, for: nil, deadline: host.loop.deadline(after: limit)) {
      [unowned host] in try TaskBindings(host: host).outcome($0, task)
    }
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    guard isOver, target.state == .cancelled else { return try super.finish(call) }
    throw host.raise(host.withTable(.timeout(after: limit), of: host.currentOp))
  }

  override func run() {
    if isOver || target.isConcluded { return super.run() }
    isOver = true
    target.stop(FlowError.timeout(after: limit).asReason)
  }
}
