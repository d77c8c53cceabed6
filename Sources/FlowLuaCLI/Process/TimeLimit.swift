internal import FlowEngine
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// The limits of a script's time, of the clock and of the processor: when one is exceeded, everything is cancelled, and
/// cleanups have their grace. Code that can't be stopped, such as a pattern match, ends with the process.
///
/// Confined to no thread: alarms call it on the watchdog's thread, which busy code can't delay.
final class TimeLimit: Sendable {
  /// The exit status of a script that has exceeded a limit, which is also `timeout`'s.
  static let status: Int32 = 124

  private let program: ByteString
  /// Whether a person types the code, so that waiting for it is no failure to stop.
  private let isSession: Bool
  private let canceller: ScriptCanceller
  private let deadline: Int64
  private let time: Double?
  private let processorTime: Int?
  private let grace: Int64
  private let state = Locked(State())

  private struct State {
    /// The next alarm, which keeps the object until the process ends: finalizers that run at its end, and output that
    /// nobody reads, are limited, too.
    var alarm: LuaAlarm?
    /// The message about the limit that was exceeded.
    var message: ByteString?
  }

  /// The time for what isn't a cleanup, such as a C function that runs or code that catches every error.
  private static let patience: Int64 = 1_000_000_000
  private static let interval: Int64 = 50_000_000

  /// Begins to limit the script of a host; nil without such an option.
  ///
  /// - Throws: A `SystemError` when the system gives no thread for it.
  static func begin(
    _ arguments: CommandLineArguments, _ host: ScriptHost
  ) throws(SystemError) -> TimeLimit? {
    guard let limits = arguments.options.confinement, limits.limitsTime else { return nil }
    let limit = TimeLimit(arguments, limits, host.canceller)
    guard limit.setAlarm() else {
      throw SystemError("the system gives no thread for the time limit", code: EAGAIN)
    }
    return limit
  }

  private init(
    _ arguments: CommandLineArguments, _ limits: ConfinementOptions, _ canceller: ScriptCanceller
  ) {
    program = arguments.program
    isSession =
      arguments.isInteractive || arguments.script == nil && !arguments.executes && isatty(0) != 0
    self.canceller = canceller
    time = limits.time
    processorTime = limits.processorTime
    let allowed = limits.time.map { Duration(clampingSeconds: $0).clampedNanoseconds } ?? .max
    deadline = LuaVM.monotonicTime.later(by: allowed)
    grace = Duration(clampingSeconds: arguments.options.grace ?? 30).clampedNanoseconds
  }

  /// The message about the limit that was exceeded; nil while none was.
  var message: ByteString? { state.withLock { $0.message } }

  // MARK: Before the end

  /// Sets the alarm for the next time at which a limit may be exceeded.
  private func setAlarm() -> Bool {
    var next = deadline
    if let left = processorTimeLeft {
      // All processors together can't use it up earlier.
      let least = left / Int64(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
      next = min(next, LuaVM.monotonicTime.later(by: max(least, 5_000_000)))
    }
    return setAlarm(at: next) { [self] in check() }
  }

  /// Sets the next alarm; returns whether the system gives a thread for it.
  private func setAlarm(at time: Int64, _ action: @escaping @Sendable () -> Void) -> Bool {
    // Made with the lock, which the action takes: it could ring, and set the one after it, before this one is stored.
    let (made, previous) = state.withLock { state in
      let previous = state.alarm
      state.alarm = LuaAlarm(at: time, action)
      return (state.alarm != nil, previous)
    }
    // Without the lock: releasing an alarm may wait for its action.
    withExtendedLifetime(previous) {}
    return made
  }

  private var processorTimeLeft: Int64? {
    guard let processorTime else { return nil }
    let limit = Duration.seconds(processorTime).clampedNanoseconds
    return max(0, limit - flowsystem_processor_time())
  }

  private func check() {
    if let time, LuaVM.monotonicTime >= deadline {
      exceed(
        "the time limit of \(FlowValue.text(of: Duration(clampingSeconds: time))) was exceeded")
    } else if let processorTime, processorTimeLeft == 0 {
      exceed("the limit of \(processorTime) s of processor time was exceeded")
    } else {
      _ = setAlarm()
    }
  }

  private func exceed(_ message: ByteString) {
    state.withLock { $0.message = message }
    canceller.cancel(FlowError(.time, message))
    let now = LuaVM.monotonicTime
    insist(until: now.later(by: grace).later(by: Self.patience), lastCleanup: now)
  }

  // MARK: After it

  /// Ends the process once only code runs that doesn't stop.
  ///
  /// - Parameters:
  ///   - end: When even cleanups are cut.
  ///   - lastCleanup: When a cleanup was last seen.
  private func insist(until end: Int64, lastCleanup: Int64) {
    let now = LuaVM.monotonicTime
    let lastCleanup = flowsystem_runs_cleanups() ? now : lastCleanup
    guard now < min(end, lastCleanup.later(by: Self.patience)) else { cut(isCleanup: now >= end) }
    _ = setAlarm(at: now.later(by: Self.interval)) { [self] in
      insist(until: end, lastCleanup: lastCleanup)
    }
  }

  private func cut(isCleanup: Bool) -> Never {
    let what: ByteString =
      isCleanup ? ": cleanups were cut" : isSession ? "" : ": the script couldn't be stopped"
    let text: ByteString = "\(program): \(message ?? "")\(what)\n"
    text.withUnsafeBytes { flowsystem_end_at_once(Self.status, $0.baseAddress, $0.count) }
  }
}
