package import FlowEngine
@_spi(Scripting) package import LuaVM

/// The service that executes ops with `thread = "remote"`, and functions: a target above this one, which knows
/// nothing else of it. A program that wants such ops gives each host a service; others don't link what they need.
package protocol RemoteService: AnyObject {
  /// `flow.remote`.
  func use(_ call: LuaCall) throws -> LuaAnswer
  /// Has a task executed; it ends with the error if that isn't possible. `context` is an op's.
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
final class RemoteServiceHolder: HostService {
  let service: any RemoteService

  init(_ service: any RemoteService) { self.service = service }

  func hostWillClose(_ host: ScriptHost) { service.close(isTerminated: false) }
}
