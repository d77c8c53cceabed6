internal import CFlowSystem
internal import FlowEngine
internal import Glibc
internal import LuaVM

/// Asks for lines and runs them, as the stand-alone interpreter does without line editing.
struct LineLoop {
  private let interpreter: Interpreter
  private let isTerminal = isatty(STDIN_FILENO) != 0
  private var vm: LuaVM { interpreter.vm }

  init(_ interpreter: Interpreter) {
    self.interpreter = interpreter
  }

  /// Goes on until the end of the input.
  func run() {
    let program = interpreter.messages.program
    interpreter.messages.program = nil
    while let line = readLine("_PROMPT", "> ") {
      do {
        guard let chunk = try load(line) else { break }
        // Each line has its own first Ctrl-C.
        interpreter.signals.catchInterruption()
        defer { interpreter.signals.stopAsking() }
        show(try vm.call(chunk, traceback: true))
      } catch {
        interpreter.messages.report(error)
      }
    }
    Output.write("\n", toError: false)
    interpreter.messages.program = program
    interpreter.signals.catchInterruption()
  }

  /// An expression, or a statement with as many lines as it takes.
  private func load(_ first: [UInt8]) throws -> LuaReference? {
    var text = first
    if text.first == UInt8(ascii: "=") { text.replaceSubrange(0..<1, with: "return ".utf8) }
    let expression = LuaString(Array("return ".utf8) + text + Array(";".utf8))
    if let chunk = try? vm.load(expression, name: "=stdin") { return chunk }
    while true {
      do {
        return try vm.load(LuaString(text), name: "=stdin")
      } catch let error as LuaError where Self.isIncomplete(error) {
        guard let next = readLine("_PROMPT2", ">> ") else { throw error }
        text.append(UInt8(ascii: "\n"))
        text += next
      }
    }
  }

  private static func isIncomplete(_ error: LuaError) -> Bool {
    error.code == .syntax && error.message.bytes.suffix(5).elementsEqual("<eof>".utf8)
  }

  private func show(_ values: [LuaValue]) {
    if values.isEmpty { return }
    do {
      try vm.call(global: "print", values)
    } catch {
      let text = (error as? LuaError)?.message.description ?? "\(error)"
      interpreter.messages.say("error calling 'print' (\(text))")
    }
  }

  /// A line without its end; nil at the end of the input.
  private func readLine(_ name: LuaString, _ prompt: ByteString) -> [UInt8]? {
    let shown = self.prompt(name) ?? prompt
    Output.write(shown, toError: false)
    var count = 0
    guard let line = flowsystem_read_line(&count) else { return nil }
    defer { free(line) }
    var bytes = Array(UnsafeRawBufferPointer(start: line, count: count))
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    // A terminal shows what is typed. Of other input lua5.4's line editing shows it.
    if !isTerminal, !bytes.isEmpty || !shown.isEmpty {
      Output.write(ByteString(bytes) + "\n", toError: false)
    }
    return bytes
  }

  /// What a global variable holds, as a string; nil: the default.
  private func prompt(_ name: LuaString) -> ByteString? {
    guard let value = try? vm.global(name), !value.isNil else { return nil }
    return (try? vm.tostring(value)).map { ByteString($0.bytes) }
  }
}
