@_spi(Scripting) internal import FlowEngine
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// `flow.on_stop`: the function that a script has for the first signal that asks it to end.
final class StopBindings: HostService {
  private let function: LuaReference
  /// Ends the time of the script.
  private var alarm: LuaAlarm?

  private init(_ function: LuaReference) { self.function = function }

  static func install(in host: ScriptHost) {
    host.define("on_stop") { host, call in
      let arguments = Arguments(host, call, "on_stop")
      let function = try arguments.function(1)
      guard let begin = host.events.onStopFunction, !host.sessionReadsInput else {
        throw host.usage(
          call, "bad use of 'on_stop' (only a script that flowlua runs gets signals)")
      }
      if host.existing(StopBindings.self) != nil {
        throw host.usage(call, "bad use of 'on_stop' (the script has such a function already)")
      }
      _ = host.service { StopBindings(function) }
      begin()
      return call.answer()
    }
  }

  /// Whether a signal has come for which there is a function.
  static var isStopping: Bool { flowsystem_stop_signal() != 0 }

  /// Calls the function if a signal has come since. The script has its grace from now on; then the signal counts.
  static func take(for host: ScriptHost) {
    guard let own = host.existing(StopBindings.self) else { return }
    let signal = flowsystem_take_stop()
    let names: [Int32: ByteString] = [SIGINT: "SIGINT", SIGTERM: "SIGTERM", SIGHUP: "SIGHUP"]
    guard let name = names[signal] else { return }
    let grace = host.loop.cleanupGrace
    let end = LuaVM.monotonicTime.later(by: grace.clampedNanoseconds)
    if end != .max { own.alarm = LuaAlarm(at: end) { flowsystem_end_stop() } }
    guard let function = try? host.vm.uniqueReference(to: own.function) else {
      return flowsystem_end_stop()
    }
    // It belongs to no code that waits below.
    let outer = host.current
    host.current = ScriptHost.Current()
    let task = SpawnedTask(host, function, [.string(name)])
    // Also while it is busy.
    task.limit(to: grace)
    task.begin()
    host.current = outer
    task.observe(StopEnd(task, host))
  }

  func hostWillClose(_ host: ScriptHost) { alarm = nil }
}

/// The end of the function: if it has failed, or wants everything to be cancelled, the signal counts at once.
private final class StopEnd: TaskObserver {
  private let task: AnyFlowTask
  private unowned let host: ScriptHost

  init(_ task: AnyFlowTask, _ host: ScriptHost) {
    self.task = task
    self.host = host
  }

  func run() {
    let result = try? host.luaResult(of: task)
    if task.state != .succeeded || result == .string("cancel") { flowsystem_end_stop() }
  }
}
