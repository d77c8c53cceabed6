internal import FlowEngine
internal import FlowRemote
@_spi(Scripting) internal import LuaVM

extension RemoteMachine {
  /// Asks a script something, again for so many nanoseconds while nobody replies; nil if nobody does.
  func ask(
    _ script: ByteString, _ question: [UInt8], for time: Int64, _ then: @escaping ([UInt8]?) -> Void
  ) {
    ask(script, question, until: LuaVM.monotonicTime.later(by: time), then)
  }

  private func ask(
    _ script: ByteString, _ question: [UInt8], until end: Int64,
    _ then: @escaping ([UInt8]?) -> Void
  ) {
    queue.ask(script, question) { [weak self] reply in
      guard let self else { return }
      guard reply == nil, LuaVM.monotonicTime < end, !isLeaving else { return then(reply) }
      _ = host.loop.scheduleOutside(after: .milliseconds(100)) { [weak self] in
        self?.ask(script, question, until: end, then)
      }
    }
  }
}
