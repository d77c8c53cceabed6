package import FlowEngine
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

extension RemoteNode {
  /// Executes jobs until signals end that. The first one lets those that execute end, for as long as the grace of
  /// cleanups is; then, or after a second one, their scripts get them back. A third one waits for nothing.
  ///
  /// - Parameters:
  ///   - onRequest: Called when a signal is handled.
  ///   - say: Prints a line.
  package func run(onRequest: () -> Void, _ say: (ByteString) -> Void) {
    var requests = 0
    while !hasEnded {
      let isOver = !host.loop.turn { [host] in hasEnded || host.vm.hasRequest }
      if isOver { return }
      guard host.takeRequest() != nil else { continue }
      requests += 1
      onRequest()
      if requests == 1 {
        if jobCount > 0 {
          say("leaves when \(jobCount == 1 ? "1 job has" : "\(jobCount) jobs have") ended")
        }
        leave()
        _ = host.loop.scheduleOutside(after: host.loop.cleanupGrace) { [weak self] in
          self?.giveBack()
        }
      } else if requests == 2 {
        say("gives \(jobCount == 1 ? "1 job" : "\(jobCount) jobs") back")
        giveBack()
      } else {
        say("ends without waiting for the server")
        hasEnded = true
      }
    }
  }
}

extension RemoteNode {
  /// Asks a script something, again for so many nanoseconds while nobody replies; nil if nobody does.
  func ask(
    _ script: ByteString, _ question: [UInt8], for time: Int64
  ) async throws(FlowError) -> [UInt8]? {
    let reply = try await host.loop.retrying(for: .nanoseconds(time)) {
      () throws(FlowError) -> [UInt8]?? in
      let reply = try await queue.ask(script, question)
      return reply != nil || isLeaving ? .some(reply) : nil
    }
    return reply ?? nil
  }
}

extension FlowEventLoop {
  /// Turns until code that waits has ended; nil if `isOver` becomes true before, or the loop ends.
  package func turn<Value>(
    _ body: @escaping () async throws -> Value, until isOver: () -> Bool = { false }
  ) -> Result<Value, FlowError>? {
    var result: Result<Value, FlowError>?
    perform(body) { result = $0 }
    _ = turn { result != nil || isOver() }
    return result
  }
}
