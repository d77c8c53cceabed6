internal import FlowEngine
internal import FlowScripting
internal import FlowSystem

/// Asks a person at the terminal what runs wait for, one question at a time.
final class Questions: TaskObserver {
  /// Safe: the loop and this live as long as the process.
  private unowned let loop: FlowEventLoop
  private let center: MessageCenter
  private var current: (wait: MessageWait, read: InputRead)?
  /// Whether the terminal has ended its input.
  private(set) var isOver = false
  /// Whether nothing else reads the terminal, as the line editor of a session does.
  var isFree = true {
    didSet {
      // The end of the input has ended the questions of one line.
      if isFree { isOver = false } else { withdraw() }
      update()
    }
  }
  private var isUpdating = false
  /// Whether an answer has just come.
  private var pauses = false
  private var sending: MessageSending?

  /// Whether a person can be asked.
  static var isPossible: Bool { isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0 }

  init(_ loop: FlowEventLoop) {
    self.loop = loop
    center = loop.messages
    center.onChange = { [weak self] in self?.update() }
  }

  /// Asks what is to be asked, or withdraws a question whose message has come from elsewhere.
  private func update() {
    if isUpdating { return }
    isUpdating = true
    // In a turn of its own: the wait may be about to find its message.
    loop.enqueue { [weak self] in
      guard let self else { return }
      isUpdating = false
      if let present = current, present.wait.state != .pending { withdraw() }
      if current == nil, isFree, !isOver, !pauses, let wait = center.waits.first { ask(wait) }
    }
  }

  private func withdraw() {
    guard let present = current.take() else { return }
    loop.standardInput.cancel(present.read)
    Output.write("\n", toError: true)
  }

  private func ask(_ wait: MessageWait) {
    let request = wait.request
    let hint: ByteString = request.type.map { $0.name == "boolean" ? " (yes or no)" : "" } ?? ""
    let question = wait.loop.secrets.redacted(request.ask ?? request.name)
    Output.write("\(question.onOneLine)\(hint) ", toError: true)
    let read = InputRead([.line(keepsNewline: false)]) { [weak self] in self?.take(wait) }
    current = (wait, read)
    if loop.standardInput.start(read) { take(wait) }
  }

  /// Takes a line as the answer.
  private func take(_ wait: MessageWait) {
    guard let read = current?.read else { return }
    current = nil
    // Its time was over meanwhile: the answer isn't one to the next question.
    guard wait.state == .pending else {
      update()
      return
    }
    guard read.problem == nil, case .bytes(let line)? = read.parts.first else {
      isOver = true
      Output.write("\n", toError: true)
      center.holds = false
      return
    }
    let text = ByteString(line.bytes.filter { $0 != 0x0D })
    let request = wait.request
    pauses = true
    if Message.value(of: text, for: request.type) == nil {
      Output.write("\(request.type?.name ?? "") expected, not '\(text.onOneLine)'\n", toError: true)
      return askLater()
    }
    let sending = wait.box.sending(
      Message(name: request.name, content: .text(text), run: request.runs.first ?? 0), on: loop)
    self.sending = sending
    sending.markObserved()
    sending.observe(self)
    sending.start()
  }

  /// The answer is sent, or can't be.
  func run() {
    if let error = sending.take()?.error {
      // The question is asked again.
      Output.write(error.message.onOneLine + "\n", toError: true)
    }
    askLater()
  }

  private func askLater() {
    // The op that has the answer prints first.
    loop.schedule(after: .milliseconds(20)) { [weak self] in
      self?.pauses = false
      self?.update()
    }
  }
}
