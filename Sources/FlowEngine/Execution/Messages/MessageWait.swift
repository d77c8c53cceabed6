/// A wait of an op for a message, as a task: its result is the value.
package final class MessageWait: FlowTask<FlowValue> {
  package let request: MessageRequest
  package let box: MessageBox
  /// Drops messages of another type.
  package let isRefused: (Message) -> Void
  /// The pause of the time limits that don't count meanwhile.
  private let pause: LimitPause?
  private var timer: LoopTimer?
  /// Whether the store knows of it.
  private var isNoted = false

  package init(
    _ request: MessageRequest, in box: MessageBox, on loop: FlowEventLoop,
    pausing pause: LimitPause?, refused: @escaping (Message) -> Void
  ) {
    self.request = request
    self.box = box
    self.pause = pause
    isRefused = refused
    super.init(on: loop)
  }

  package override var title: ByteString { title(of: "wait for <\(request.name)>") }

  /// Begins to wait, once it has an owner; ends at once if the message is there.
  package func start() {
    if look() { return }
    pause?.begin()
    loop.messages.add(self)
  }

  /// Looks whether the message is there; returns whether the wait has ended.
  func look() -> Bool {
    do {
      if !isNoted {
        guard let began = try box.store.begin(request, at: now) else {
          finish(.failure(.timeout(after: request.timeout ?? .zero)))
          return true
        }
        isNoted = true
        if let timeout = request.timeout { limit(to: timeout, since: began) }
      }
      return try take()
    } catch {
      if box.store.mayPass(error) { return false }
      finish(.failure(.from(error)))
      return true
    }
  }

  /// Seconds since 1970.
  private var now: Double { Double(loop.timeSource.wallBase &+ loop.now()) / 1e9 }

  private func limit(to timeout: Duration, since began: Double) {
    let over = { [weak self] in
      self?.stop(FlowError.timeout(after: timeout))
      return
    }
    guard box.store.isShared else {
      timer = loop.schedule(after: timeout, over)
      return
    }
    // From the first process that has waited.
    let left = Duration(clampingSeconds: max(0, timeout.inSeconds - max(0, now - began)))
    // Nothing but waits for messages is left when only this could happen.
    timer =
      loop.timeSource.isVirtual
      ? loop.schedule(after: left, over) : loop.scheduleAside(after: left, over)
  }

  /// Takes the message if there is one; returns whether the wait has ended.
  private func take() throws -> Bool {
    while let message = try box.store.take(request) {
      if let value = message.value(for: request.type) {
        finish(.success(value))
        return true
      }
      try box.store.drop(request)
      isRefused(message)
    }
    return false
  }

  func finish(_ outcome: Result<FlowValue, FlowError>) {
    guard state == .pending else { return }
    timer?.cancel()
    pause?.end()
    loop.messages.remove(self)
    switch outcome {
    case .success(let value):
      box.store.end(request, isTimedOut: false)
      end(with: value)
    case .failure(let error):
      if !box.store.isSuspended { box.store.end(request, isTimedOut: error.kind == .timeout) }
      end(error: error)
    }
  }

  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    finish(.failure(error))
    return nil
  }
}

/// All waits for messages on a loop.
package final class MessageCenter: LoopExtension {
  /// Those that are pending, the oldest first.
  package private(set) var waits: [MessageWait] = []
  /// Whether a pending wait keeps the loop from being idle: messages come from outside of it.
  package var holds: Bool { didSet { update() } }
  /// Called when a wait was added or has ended.
  package var onChange: (() -> Void)?
  private unowned let loop: FlowEventLoop
  private var work: ExternalWork?
  private var isLooking = false

  /// How often the store is looked at for messages of other processes.
  private static let interval = Duration.milliseconds(200)

  init(_ loop: FlowEventLoop) {
    self.loop = loop
    holds = !loop.timeSource.isVirtual
  }

  func add(_ wait: MessageWait) {
    waits.append(wait)
    update()
    look()
  }

  func remove(_ wait: MessageWait) {
    guard let index = waits.firstIndex(where: { $0 === wait }) else { return }
    waits.remove(at: index)
    update()
  }

  private func update() {
    let isHeld = holds && !waits.isEmpty
    if isHeld, work == nil { work = loop.mailbox.begin() }
    if !isHeld { self.work.take()?.endOnLoop() }
    onChange?()
  }

  /// Gives messages to those that wait for them, the oldest wait first.
  package func deliver() {
    for wait in waits where wait.state == .pending { _ = wait.look() }
  }

  /// Looks now and then for messages of other processes.
  private func look() {
    guard !isLooking, waits.contains(where: { $0.box.store.isShared }) else { return }
    isLooking = true
    loop.scheduleAside(after: Self.interval) { [weak self] in
      guard let self else { return }
      isLooking = false
      if waits.contains(where: { $0.box.store.isShared && $0.box.store.mayHaveNew() }) { deliver() }
      look()
    }
  }

  package func loopIsShutDown() {
    waits = []
    onChange = nil
    work?.endOnLoop()
    work = nil
  }
}

extension FlowEventLoop {
  /// The waits for messages on this loop.
  package var messages: MessageCenter {
    let id = ObjectIdentifier(MessageCenter.self)
    if let known = extensions[id] as? MessageCenter { return known }
    let made = MessageCenter(self)
    extensions[id] = made
    return made
  }

  /// The waits, if there was one; nil before.
  package var presentMessages: MessageCenter? {
    extensions[ObjectIdentifier(MessageCenter.self)] as? MessageCenter
  }
}

extension Run {
  /// The messages of the run: those of its store, else of the outermost run around it.
  var messageBox: MessageBox {
    if let box = (keeper as? any MessageKeeper)?.messageBox { return box }
    if let outer { return outer.run.messageBox }
    if let box = ownMessages { return box }
    let made = MessageBox(MemoryMessages())
    ownMessages = made
    return made
  }

  /// The lineages of the runs whose messages an op of the run takes: its own, and those around it.
  var messageRuns: [UInt64] {
    var runs = [lineage]
    var around = outerRun
    while let run = around {
      runs.append(run.lineage)
      around = run.outerRun
    }
    return runs
  }

  /// Sends a message to the run, which `ctx:wait_for(name)` of one of its ops takes. Messages of one name are taken in
  /// their order, each once. Of a kept run it is in the store when this returns, and another process that continues
  /// the run takes it if this one doesn't. Called on the thread of the run's loop, which it blocks for at most five seconds
  /// while another process writes into the store.
  ///
  /// ```swift
  /// try run.send("approved", .boolean(true))
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the message.
  ///   - value: The value.
  /// - Throws: A `FlowError` when the run has ended, or the store can't be written.
  public func send(_ name: some FlowText, _ value: FlowValue) throws(FlowError) {
    loop.checkThread()
    guard state == .pending else { throw .usage("the run '\(self.name)' has ended") }
    do {
      try messageBox.send(
        Message(name: name.byteString, content: .value(value), run: lineage), on: loop)
    } catch {
      throw FlowError.from(error)
    }
  }
}

extension OpContext {
  /// Begins to wait for a message to the run.
  ///
  /// - Parameters:
  ///   - name: The name of the message.
  ///   - type: The type of its value; others are dropped, with a line in the log.
  ///   - ask: A question for a person.
  ///   - timeout: How long to wait, from the first process that has waited on; nil: for ever. Timeouts of ops and flows
  ///     don't count meanwhile.
  /// - Returns: The wait.
  package func messageWait(
    for name: ByteString, type: FlowValueType?, ask: ByteString?, timeout: Duration?
  ) -> MessageWait {
    let box = run.messageBox
    let (wait, isOfFirstAttempt) = box.nextWait(of: key, attempt: attemptGeneration, for: name)
    var request = MessageRequest(
      name: name, wait: wait, runs: run.messageRuns, type: type, ask: ask, timeout: timeout)
    request.isContinued = isOfFirstAttempt && keeping?.continuesWaits == true
    let pause = execution.map { execution in
      LimitPause { [unowned execution] in execution.limitsAround }
    }
    return MessageWait(request, in: box, on: run.loop, pausing: pause) { [weak self] message in
      guard let self, let type else { return }
      let shown: ByteString =
        switch message.content {
        case .value(let value): value.logText
        case .text(let text): text
        }
      log("Dropped message <\(name)>: \(type.name) expected, got \(shown)")
    }
  }
}
