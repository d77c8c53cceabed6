internal import FlowLoop

/// The sending of a message into a store, as a task. While another process writes there, it is tried again now and then; the
/// loop isn't blocked meanwhile.
package final class MessageSending: FlowTask<Void> {
  private let name: ByteString
  /// Sends it, or throws at once.
  private let attempt: () throws -> Void
  private let mayPass: (any Error) -> Bool
  /// Set while it waits: keeps the loop from being idle.
  private var work: ExternalWork?
  private var timer: LoopTimer?
  private var attempts = 0

  private static let interval = Duration.milliseconds(20)
  /// As many as take five seconds.
  private static let most = 250

  /// - Parameters:
  ///   - name: The name of the message.
  ///   - loop: The loop of the task.
  ///   - mayPass: Whether the reason of a failure may be over at the next attempt.
  ///   - attempt: Sends the message, or throws at once.
  package init(
    _ name: ByteString, on loop: FlowEventLoop, mayPass: @escaping (any Error) -> Bool,
    attempt: @escaping () throws -> Void
  ) {
    self.name = name
    self.mayPass = mayPass
    self.attempt = attempt
    super.init(on: loop)
  }

  package override var title: ByteString { title(of: "send <\(name)>") }

  /// Makes the first attempt, once it has an owner.
  package func start() {
    attempts += 1
    do {
      try attempt()
      finish(nil)
    } catch  where mayPass(error) && attempts < Self.most {
      if work == nil { work = loop.mailbox.begin() }
      // In real time: the other process doesn't know of a virtual clock.
      timer = loop.scheduleOutside(after: Self.interval) { [weak self] in self?.start() }
    } catch {
      finish(.from(error))
    }
  }

  private func finish(_ error: FlowError?) {
    guard state == .pending else { return }
    timer?.cancel()
    work.take()?.endOnLoop()
    if let error { end(error: error) } else { end(with: ()) }
  }

  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    finish(error)
    return nil
  }
}

extension MessageBox {
  /// Sends a message as `send`, without blocking the loop.
  package func sending(_ message: Message, on loop: FlowEventLoop) -> MessageSending {
    MessageSending(message.name, on: loop, mayPass: store.mayPass) { [store] in
      try store.add(message, waits: false)
      loop.messages.deliver()
    }
  }
}

extension Run {
  /// Sends a message as `send`, without blocking the loop; nil when the run has ended.
  package func sending(_ name: ByteString, _ value: FlowValue) -> MessageSending? {
    guard state == .pending else { return nil }
    return messageBox.sending(
      Message(name: name, content: .value(value), run: lineage), on: loop)
  }
}
