internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.sleep` and `flow.now`.
extension ScriptHost {
  func installTime() throws {
    define("sleep") { host, call in
      let duration = try Arguments(host, call, "sleep").duration(1)
      return try call.wait(SleepWait(host.loop, until: host.loop.deadline(after: duration)))
    }
    define("now") { host, call in
      call.answer(.number(Double(host.loop.now()) / 1e9))
    }
  }
}

/// Waits until a time of the loop's clock.
final class SleepWait: LuaWait, TimedJob {
  // Set until the time has come. Safe: the loop calls `takeJob` at its own end at the latest.
  @exclusivity(unchecked) private unowned(unsafe) var loop: EventLoop?

  init(_ loop: EventLoop, until deadline: Int64) {
    self.loop = loop
    super.init()
    loop.schedule(at: deadline, timed: self)
  }

  var isPending: Bool { loop != nil }

  override var subject: String { "sleep" }

  func takeJob() -> any LoopJob {
    loop = nil
    // A fiber continues in its own turn, so the wait needs none.
    guard let fiber = waiter as? Fiber else { return self }
    readyForWaiter()
    return fiber
  }

  func run() { ready() }

  override func abandon() {
    guard let loop else { return }
    self.loop = nil
    loop.noteCancelledTimer()
  }
}
