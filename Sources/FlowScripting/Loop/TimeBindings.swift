internal import FlowEngine
internal import LuaVM

/// `flow.sleep` and `flow.now`.
extension ScriptHost {
  func installTime() throws {
    try define("sleep") { host, call in
      let seconds = try Arguments(host, call, "sleep").seconds(1)
      return try call.wait(SleepWait(host.loop, until: host.loop.deadline(after: seconds)))
    }
    try define("now") { host, call in
      call.answer(.number(Double(host.loop.now()) / 1e9))
    }
  }
}

/// Waits until a time of the loop's clock.
final class SleepWait: LuaWait, LoopJob {
  private var timer: Timer?

  init(_ loop: EventLoop, until deadline: Int64) {
    super.init()
    timer = loop.schedule(at: deadline, self)
  }

  func run() {
    timer = nil
    ready()
  }

  override func abandon() {
    timer?.cancel()
    timer = nil
  }
}
