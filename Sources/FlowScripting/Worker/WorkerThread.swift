internal import FlowEngine
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// The settings of a worker's thread.
struct WorkerSetting: Sendable {
  /// The configuration of its state.
  let configuration: LuaConfiguration
  /// `package.path` and `package.cpath` of the main state.
  let paths: [(field: ByteString, text: ByteString)]
  let conditions: WorkerConditions
  /// Whether runs are checked instead of executed.
  let isChecking: Bool
  let isVirtual: Bool
  /// Whether programs aren't started, because the main loop is a test's that replaces them.
  let refusesPrograms: Bool
  /// Whether requests aren't sent, for the same reason.
  let refusesRequests: Bool
  /// The effect of something deprecated.
  let deprecations: WorkerDeprecations
  /// The trace of the main loop.
  let trace: TraceContext?
  /// Its place in logs, and the value of `ctx.lane`.
  let lane: WorkerLane
  /// Texts that the process must never show.
  let secrets: SecretTexts
  let channel: WorkerChannel
  /// Receives a report, from any thread.
  let deliver: @Sendable (WorkerReport) -> Void
  /// Receives the reason why there is no worker.
  let refuse: @Sendable (any Error) -> Void
}

/// The conditions of workers that they have from their script.
package struct WorkerConditions: Equatable, Sendable {
  package let gracePeriod: Duration
  package let cleanupGrace: Duration
  /// Whether logs have each wait.
  package let logsWaits: Bool
  /// Whether `flow` is a global of the main state, as sessions have it.
  package let hasGlobalModule: Bool

  package init(
    gracePeriod: Duration, cleanupGrace: Duration, logsWaits: Bool, hasGlobalModule: Bool
  ) {
    self.gracePeriod = gracePeriod
    self.cleanupGrace = cleanupGrace
    self.logsWaits = logsWaits
    self.hasGlobalModule = hasGlobalModule
  }

  /// Those of a script's workers.
  package init(of host: ScriptHost) {
    self.init(
      gracePeriod: host.loop.gracePeriod, cleanupGrace: host.loop.cleanupGrace,
      logsWaits: host.logsWaits, hasGlobalModule: host.hasGlobalModule)
  }
}

/// The effect in a worker of something deprecated.
enum WorkerDeprecations: Sendable {
  case ignored, refused
  /// Reports the text on the thread of the main host, from any thread.
  case reported(@Sendable (ByteString) -> Void)
}

/// The place in logs of a worker.
struct WorkerLane: Sendable {
  /// From 1 on.
  let number: Int
  /// Its name for scripts of other nodes.
  let name: ByteString?

  /// The name of the node for scripts of other nodes.
  var node: ByteString? {
    name.map { name in
      ByteString(name.bytes[..<(name.bytes.lastIndex(of: UInt8(ascii: "/")) ?? name.count)])
    }
  }

  /// The value of `ctx.lane`.
  var value: FlowValue { name.map { .bytes($0) } ?? .integer(Int64(number)) }
}

/// The threads of workers: each has a Lua state and an event loop of its own.
enum WorkerThread {
  /// Starts the thread of a worker; returns false if the system provides none.
  static func start(_ setting: WorkerSetting) -> Bool {
    let thread = try? SignalFreeThread.start(stackSize: SignalFreeThread.mainStackSize) {
      run(setting)
      setting.channel.end()
    }
    return thread != nil
  }

  private static func run(_ setting: WorkerSetting) {
    do {
      try WorkerRuntime(setting).run()
    } catch {
      setting.refuse(error)
    }
  }
}

/// The clock of a worker whose main loop has a virtual one: it shows that loop's time, and makes
/// that loop wait when the worker's clock would jump.
// Unchecked: `wait` is set before the worker's loop turns, and only its thread uses it.
final class WorkerClock: TimeSource, @unchecked Sendable {
  private let channel: WorkerChannel
  /// Sends the time until which the worker waits to the main loop, and waits for an event.
  var wait: ((Int64) -> Void)?

  init(_ channel: WorkerChannel) {
    self.channel = channel
  }

  func now() -> Int64 { channel.now }

  var wallBase: Int64 { VirtualClock().wallBase }

  var isVirtual: Bool { true }

  func advance(to time: Int64) { wait?(time) }
}
