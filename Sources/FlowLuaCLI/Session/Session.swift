internal import FlowEngine
internal import FlowScripting
internal import Glibc
internal import LuaVM

/// Asks for lines and runs them. On a terminal lines are edited and results are shown at length; other
/// input is treated as the stand-alone interpreter does it.
final class Session {
  private let interpreter: Interpreter
  private let host: ScriptHost
  private let terminal = Terminal()
  private var vm: LuaVM { interpreter.vm }

  init(_ interpreter: Interpreter) throws {
    self.interpreter = interpreter
    host = try interpreter.deferred.makeHost()
  }

  /// Goes on until the end of the input.
  func run() {
    let program = interpreter.messages.program
    interpreter.messages.program = nil
    if terminal.showsErrors { interpreter.messages.decorate = terminal.decorated }
    defineNames()
    // Lines go on where a script would end: the error that is raised then says why.
    if host.onNeedOfOutcome != nil { host.onNeedOfOutcome = { _, _ in } }
    // On a terminal nothing is stalled: a line may still come that settles it. A virtual clock stands
    // still while anything may come from outside, so that it goes on before each prompt instead.
    let isVirtual = host.loop.clock.isVirtual
    let presence = terminal.isInput && !isVirtual ? host.loop.mailbox.begin() : nil
    let source: any LineSource =
      EditedLines(self, host, interpreter.signals, terminal) ?? PlainLines(self, host, terminal)
    if terminal.isInput { interpreter.signals.catchInterruption(repeatedly: true) }
    loop: while true {
      if terminal.isInput {
        if isVirtual { while !vm.hasRequest, host.loop.turn(mayBlock: true) != .idle {} }
        reportFailures()
      }
      do {
        switch try readChunk(source) {
        case .end: break loop
        case .dropped: continue
        case .chunk(let chunk): show(try run(chunk))
        }
      } catch {
        interpreter.messages.report(error)
      }
    }
    if !(source is EditedLines) { Output.write("\n", toError: false) }
    presence?.end()
    if terminal.isInput { reportFailures() }
    interpreter.messages.decorate = nil
    interpreter.messages.program = program
    interpreter.signals.catchInterruption()
  }

  /// What only lines have: scripts have the standard names alone.
  private func defineNames() {
    try? vm.setGlobal("flow", .reference(host.module))
    let help = try? vm.makeFunction { [unowned host] call in
      let about = call.count == 0 ? nil : try call.value(1)
      Output.write(host.help(about: about), toError: false)
      return call.answer()
    }
    if let help { try? vm.setGlobal("help", .reference(help)) }
  }

  private func run(_ chunk: LuaReference) throws -> [LuaValue] {
    // Otherwise each line has its own first Ctrl-C.
    if !terminal.isInput { interpreter.signals.catchInterruption() }
    host.beginChunk()
    defer {
      host.endChunk()
      if !terminal.isInput { interpreter.signals.stopAsking() }
    }
    return try vm.call(chunk, traceback: true)
  }

  private enum Reading {
    case chunk(LuaReference)
    /// Ctrl-C has dropped what was typed.
    case dropped
    case end
  }

  /// An expression, or a statement with as many lines as it takes.
  private func readChunk(_ source: any LineSource) throws -> Reading {
    var text: [UInt8]
    switch source.readLine(prompt("_PROMPT") ?? "> ") {
    case .line(let line): text = line
    case .dropped: return .dropped
    case .end: return .end
    }
    var isDropped = false
    defer { if !isDropped { source.remember(text) } }
    let isReturn = text.first == UInt8(ascii: "=")
    let first = isReturn ? Array("return ".utf8) + text.dropFirst() : text
    let expression = LuaString(Array("return ".utf8) + first + Array(";".utf8))
    if let chunk = try? vm.load(expression, name: "=stdin") { return .chunk(chunk) }
    while true {
      do {
        let code = isReturn ? Array("return ".utf8) + text.dropFirst() : text
        return .chunk(try vm.load(LuaString(code), name: "=stdin"))
      } catch let error as LuaError where Self.isIncomplete(error) {
        switch source.readLine(prompt("_PROMPT2") ?? ">> ") {
        case .line(let next): text += [UInt8(ascii: "\n")] + next
        case .dropped:
          isDropped = true
          return .dropped
        case .end: throw error
        }
      }
    }
  }

  private static func isIncomplete(_ error: LuaError) -> Bool {
    error.code == .syntax && error.message.bytes.suffix(5).elementsEqual("<eof>".utf8)
  }

  private func show(_ values: [LuaValue]) {
    guard let first = values.first else { return }
    if terminal.isInput { try? vm.setGlobal("_", first) }
    if terminal.showsResults {
      let size = terminal.size
      for value in values {
        let text = ResultFormatter(vm, columns: size.columns).text(of: value)
        Output.write(text + "\n", toError: false)
      }
      return
    }
    do {
      try vm.call(global: "print", values)
    } catch {
      let text = (error as? LuaError)?.message.description ?? "\(error)"
      interpreter.messages.say("error calling 'print' (\(text))")
    }
  }

  /// Tells of failures that nobody has observed so far.
  func reportFailures() {
    for failure in host.takeUnobservedFailures() {
      interpreter.messages.report(failure.error, of: failure.name)
    }
  }

  /// What a global variable holds, as a string; nil: the default.
  private func prompt(_ name: LuaString) -> ByteString? {
    guard let value = try? vm.global(name), !value.isNil else { return nil }
    return (try? vm.tostring(value)).map { ByteString($0.bytes) }
  }
}
