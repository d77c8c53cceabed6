internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Cancels what a host runs, from any thread; see `ScriptHost.canceller`.
// The monitor guards all properties; the host is only used on its own thread.
public final class ScriptCanceller: @unchecked Sendable {
  private let monitor = Monitor()
  /// The error of a cancellation that the host hasn't taken.
  private var request: FlowError?
  /// Set while the host is open. Called with the lock held: `detach` takes it away before the state is
  /// released, and the call only sends a signal.
  private var attention: LuaAttention?
  private var mailbox: Mailbox?
  private var isRepeating = false
  // Unowned: the host detaches it before its end.
  private unowned(unsafe) var host: ScriptHost?

  /// How long until a signal that the host hasn't noticed is repeated, in nanoseconds; it doubles each time.
  private static let firstInterval: Int64 = 5_000_000
  private static let lastInterval: Int64 = 640_000_000

  init() {}

  /// Cancels everything that the host runs: runs, tasks, and the code that executes or waits now.
  ///
  /// Code of ops, callbacks and tasks is stopped as by a timeout, also while it is busy: no `pcall` notices.
  /// In the main chunk an error is raised. The error has the kind `cancelled`, and names the reason. Cleanups
  /// and final steps run. A host that runs nothing takes it when it next runs something; it can be used
  /// again afterwards. Does nothing after the host was closed.
  ///
  /// - Parameter reason: The reason, for errors and logs.
  public func cancel(reason: String? = nil) {
    let mailbox = monitor.locked {
      if request == nil { request = .cancelled(reason: reason.map { ByteString($0) }) }
      return self.mailbox
    }
    // For a host that waits.
    mailbox?.post { [self] _ in host?.takeCancellation(isInCode: false) }
    call()
  }

  /// Signals the host, if it is there, until it has taken the cancellation.
  private func call() {
    let begins = monitor.locked {
      guard let attention, request != nil else { return false }
      attention.call()
      defer { isRepeating = true }
      return !isRepeating
    }
    if begins { HelperThreads.shared.run { [self] in HelperThreads.shared.standAside(insist) } }
  }

  /// Repeats the signal until the host has taken the cancellation: code that is just about to begin may miss
  /// it.
  private func insist() {
    var interval = Self.firstInterval
    monitor.locked {
      while request != nil, attention != nil {
        let end = LuaVM.monotonicTime.later(by: interval)
        while request != nil, attention != nil, monitor.wait(until: end) {}
        if request != nil { attention?.call() }
        interval = min(interval * 2, Self.lastInterval)
      }
      isRepeating = false
    }
  }

  /// Returns the error of the cancellation, which the caller handles from now on; nil if there is none.
  func take() -> FlowError? {
    monitor.locked {
      guard let taken = request else { return nil }
      request = nil
      monitor.broadcast()
      return taken
    }
  }

  func attach(to host: ScriptHost) {
    host.vm.acceptAttention()
    host.vm.onHostAttention = { [unowned host] in host.takeCancellation(isInCode: true) }
    monitor.locked {
      self.host = host
      attention = host.vm.attention
      mailbox = host.loop.mailbox
    }
    call()
  }

  /// Called on the host's thread before its state is closed.
  func detach() {
    monitor.locked {
      host = nil
      attention = nil
      mailbox = nil
      request = nil
      monitor.broadcast()
    }
  }
}
