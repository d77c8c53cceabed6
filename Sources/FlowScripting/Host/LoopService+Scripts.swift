public import FlowEngine

extension LoopService {
  /// Makes a service of scripts; `run()` starts it.
  ///
  /// ```swift
  /// let scripts = try await ScriptThread(name: "scripts")
  /// let service = LoopService(on: scripts, grace: .seconds(10)) { host in
  ///   let chunk = try host.vm.load("require('flow').sleep(60)", name: "=script", mode: "t")
  ///   while !LoopService.isShuttingDown { _ = try host.vm.call(chunk) }
  /// }
  /// try await service.run()
  /// ```
  ///
  /// After the grace a shutdown also stops scripts that are busy; see `ScriptCanceller.cancel`. Cancelling the
  /// task of `run()` stops them at once. A main chunk can catch the error of its stop, ops and tasks can't.
  ///
  /// - Parameters:
  ///   - scripts: The thread of the host. The service keeps it; its owner shuts it down after the service.
  ///   - reason: The reason that runs and scripts show which a shutdown stops.
  ///   - grace: How long the operation, scripts and runs may continue after a shutdown has begun, before they
  ///     are cancelled; see `isShuttingDown`.
  ///   - operation: The work, on the thread. A shutdown cancels it after the grace.
  public convenience init(
    on scripts: ScriptThread, reason: String = "shutting down", grace: Duration = .zero,
    _ operation: @escaping ScriptOperation<Void>
  ) {
    self.init(
      on: scripts.thread.mailbox, of: scripts.thread, reason: reason, grace: grace,
      interrupt: { _ in scripts.canceller.cancel(reason: reason) }
    ) { _ in
      guard let host = scripts.currentHost else { throw CancellationError() }
      do {
        try await operation(host)
      } catch {
        // An error that came out of Lua may be that of the stop.
        let stop = host.flowError(from: error)
        throw stop.kind == .cancelled ? stop : error
      }
    }
  }
}
