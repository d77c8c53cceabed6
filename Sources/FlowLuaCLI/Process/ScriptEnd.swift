internal import FlowEngine
internal import FlowScripting
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// The end of a script: tasks that it has started are awaited or cancelled, and no failure is lost.
struct ScriptEnd {
  private let deferred: DeferredScriptHost
  private let messages: Messages
  /// The message about what has cancelled everything.
  private let interruption: () -> ByteString
  /// Whether lines were typed, which may build something to look at.
  private let isSession: Bool

  init(
    _ deferred: DeferredScriptHost, _ messages: Messages, isSession: Bool,
    interruption: @escaping () -> ByteString
  ) {
    self.deferred = deferred
    self.messages = messages
    self.isSession = isSession
    self.interruption = interruption
  }

  /// The main chunk has returned: waits until everything has settled. Returns whether the script
  /// has succeeded.
  func finish() -> Bool {
    guard let host = deferred.host else { return true }
    let ending = host.runToEnd()
    // As at a wait of the main chunk, where it would have been an error.
    if ending == .interrupted {
      messages.reportInterruption(interruption())
    } else if !isSession {
      for warning in host.warningsAtEnd { messages.say(warning) }
    }
    return !messages.reportFailures(of: host) && ending == .settled
  }

  /// The main chunk has failed, and the failure has been reported: cancels everything and waits for
  /// the cleanups. Returns whether there is no other failure.
  func cancel(because reason: ByteString) -> Bool {
    guard let host = deferred.host else { return true }
    host.cancelEverything(reason: reason)
    if host.vm.takeInterruption(), flowsystem_was_interrupted() {
      messages.reportInterruption(interruption())
    }
    return !messages.reportFailures(of: host)
  }
}
