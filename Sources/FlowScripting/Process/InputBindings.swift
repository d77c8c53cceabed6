internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.read`.
extension ScriptHost {
  func installInput() throws {
    define("read") { host, call in
      try host.checkAllowed(.files, call, "read")
      if host.sessionReadsInput {
        throw host.usage(
          call,
          "bad use of 'read' (a session reads the standard input itself; io.read reads a line)")
      }
      let wait = InputWait(host, try host.inputFormats(Arguments(host, call, "read")))
      wait.start()
      return try call.wait(wait)
    }
  }

  /// The formats of `io.read`; a line without any.
  private func inputFormats(_ arguments: Arguments) throws -> [InputFormat] {
    if arguments.count == 0 { return [.line(keepsNewline: false)] }
    return try (1...arguments.count).map { index in
      let expected = "\"l\", \"L\", \"n\", \"a\" or a number of bytes"
      if let number = arguments.call.number(index) {
        guard let count = Int(exactly: number), count >= 0 else {
          throw arguments.wrong(
            index,
            "\(expected) expected, got \(FlowValue(try arguments.call.value(index)).logTextBytes)"
          )
        }
        return .bytes(count)
      }
      let text = try arguments.string(index)
      // As in io.read: an optional asterisk, and the first letter counts.
      switch text.bytes.first(where: { $0 != UInt8(ascii: "*") }) {
      case UInt8(ascii: "l"): return .line(keepsNewline: false)
      case UInt8(ascii: "L"): return .line(keepsNewline: true)
      case UInt8(ascii: "n"): return .number
      case UInt8(ascii: "a"): return .all
      default: throw arguments.wrong(index, "\(expected) expected, got '\(text)'")
      }
    }
  }
}

/// Waits for standard input.
private final class InputWait: LuaWait {
  private let host: ScriptHost
  private let loop: EventLoop
  private let formats: [InputFormat]
  private var read: InputRead?

  override var subject: String { "standard input" }

  init(_ host: ScriptHost, _ formats: [InputFormat]) {
    self.host = host
    loop = host.loop
    self.formats = formats
  }

  func start() {
    let read = InputRead(formats) { [weak self] in self?.ready() }
    self.read = read
    if loop.standardInput.start(read) { ready() }
  }

  override func abandon() {
    if !isReady, let read = read.take() { loop.standardInput.cancel(read) }
  }

  override func discard() {
    if let read = read.take() { loop.standardInput.giveBack(read) }
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    guard let read = read.take() else { return call.answer() }
    if let problem = read.problem {
      if problem.isLackOfMemory { throw LuaError(.memory, LuaVM.memoryError) }
      // As io.read returns it.
      let code = problem.code.map { LuaValue.integer(Int64($0)) } ?? .nil
      return call.answer([.nil, .string(problem.messageBytes), code])
    }
    return call.answer(
      try read.parts.map { part in
        switch part {
        case .bytes(let bytes): .string(bytes)
        case .number(let text): try host.vm.number(from: text)
        case .end: .nil
        }
      })
  }
}
