internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// Calls a function of a script with the progress of a request, one call at a time. An error of the
/// function ends the request.
final class HTTPProgress: TaskObserver {
  private let host: ScriptHost
  private let function: LuaReference
  private let origin: UInt64
  /// The request; set before it starts.
  var work: HTTPWork?
  private var running: AnyFlowTask?
  /// What came during a call that waits: only the latest counts.
  private var next: (done: Int64, total: Int64?)?

  init(_ host: ScriptHost, _ function: LuaReference, origin: UInt64) {
    self.host = host
    self.function = function
    self.origin = origin
  }

  func report(_ done: Int64, _ total: Int64?) {
    guard running == nil else {
      next = (done, total)
      return
    }
    guard let function = try? host.vm.uniqueReference(to: function) else { return }
    let arguments: [LuaValue] = [.integer(done), total.map { .integer($0) } ?? .nil]
    let call = host.spawn(function, arguments, origin: origin)
    call.markObserved()
    if call.isConcluded {
      check(call)
    } else {
      running = call
      call.observe(self)
    }
  }

  func run() {
    guard let ended = running else { return }
    running = nil
    check(ended)
    if let next, work?.isUnderway == true {
      self.next = nil
      report(next.done, next.total)
    }
  }

  private func check(_ call: AnyFlowTask) {
    if let error = call.error, error.kind != .cancelled { work?.stop(error) }
  }
}
