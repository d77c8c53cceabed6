package import FlowEngine
@_spi(Scripting) package import LuaVM

/// What executes ops with `thread = "remote"`, and functions: a target above this one, which knows nothing else of it. A
/// program that wants such ops gives each host a service; others don't link what they need.
package protocol RemoteService: AnyObject {
  /// `flow.remote`.
  func use(_ call: LuaCall) throws -> LuaAnswer
  /// Has a task executed; it ends with the error if that isn't possible. `context` is that of an op.
  func submit(
    _ task: any WorkerTask, _ number: UInt64, _ job: WorkerJob, _ function: WorkerFunction,
    _ tags: RemoteTags, of context: OpContext?) throws(FlowError)
  /// Makes a task stop; false if it isn't one that executes elsewhere.
  func stop(_ number: UInt64, _ error: FlowError) -> Bool
  /// Sends replies that wait for further ones, because code may be busy for long from now on.
  func sendWaitingReplies()
  /// Ends all. `isTerminated`: a signal ends the process, and another one may continue its kept runs.
  func close(isTerminated: Bool)
  /// Whether nothing is sent any more, after `close`.
  var hasEnded: Bool { get }
}

/// Ends the service with its host.
private final class RemoteServiceHolder: HostService {
  let service: any RemoteService

  init(_ service: any RemoteService) { self.service = service }

  func hostWillClose(_ host: ScriptHost) { service.close(isTerminated: false) }
}

extension ScriptHost {
  /// What executes ops on other machines; nil for nothing. It is given once, before a script runs.
  package var remote: (any RemoteService)? { existing(RemoteServiceHolder.self)?.service }

  package func setRemote(_ service: any RemoteService) {
    // These are closed after it: a worker that can't be stopped doesn't delay what the server has to know.
    _ = workerPools
    _ = self.service { RemoteServiceHolder(service) }
  }

  /// Whether ops with `thread = "remote"` execute on other machines: else in workers, as in tests.
  var usesRemote: Bool { waitingLoops.isEmpty && loop.processReplacement == nil }

  func neededRemote() throws(FlowError) -> any RemoteService {
    if let remote { return remote }
    throw .usage(
      "this program can't execute ops on other machines: it has to import FlowNodes, and call `ScriptHost.useRemote` or `allowRemote`"
    )
  }

  func installRemote() {
    define("remote") { host, call in
      let remote: any RemoteService
      do throws(FlowError) { remote = try host.neededRemote() } catch {
        throw host.usage(call, "bad use of 'remote' (\(error.message))")
      }
      return try remote.use(call)
    }
  }

  /// Ends the jobs on other machines, for a process that ends next: the server has received what was sent to it then, unless
  /// it hasn't taken that for 1 s.
  func closeRemote(isTerminated: Bool) {
    guard let remote else { return }
    remote.close(isTerminated: isTerminated)
    _ = loop.run { remote.hasEnded }
  }

  /// Closes the host, for a process that ends next, as `closeRemote`.
  package func closeAtExit() {
    let remote = remote
    close()
    if let remote { _ = loop.run { remote.hasEnded } }
  }
}
