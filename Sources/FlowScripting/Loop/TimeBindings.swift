internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.sleep` and `flow.now`.
struct TimeBindings {
  let host: ScriptHost

  func install() {
    host.define("sleep") { host, call in
      // Not as a duration, whose 128 bits would cost as much as the timer.
      let time = Int64(clampingSeconds: try Arguments(host, call, "sleep").seconds(1))
      // Unretained, because there are weak references to the loop, which make a retain slow. Safe: the host holds it.
      return try call.wait(
        Unmanaged.passUnretained(host.loop)._withUnsafeGuaranteedRef {
          SleepWait($0, until: $0.now().later(by: time))
        })
    }
    host.define("now") { host, call in
      call.answer(.number(Double(host.loop.now()) / 1e9))
    }
  }
}

/// Waits until a time of the loop's clock.
final class SleepWait: LuaWait, TimedJob {
  // Set until the time has come. Safe: the loop calls `takeJob` at its own end at the latest. Unmanaged, because
  // a look whether it is set would retain the loop otherwise.
  @exclusivity(unchecked) private var loop: Unmanaged<FlowEventLoop>?

  init(_ loop: FlowEventLoop, until deadline: Int64) {
    self.loop = .passUnretained(loop)
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
    loop.takeUnretainedValue().noteCancelledTimer()
  }
}
