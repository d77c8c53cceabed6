internal import FlowEngine
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// Reads lines and runs them. On a terminal, lines are edited, variables last and results are shown
/// in detail. Other input is handled as by the stand-alone interpreter.
final class Session {
  private let interpreter: Interpreter
  private let host: ScriptHost
  private let terminal: Terminal
  /// nil if each line has variables of its own, as lua5.4 has it.
  let locals: SessionLocals?
  private var input: ChunkInput?
  /// The chunks that have run, for `.save`; on a terminal only.
  private var transcript: [[UInt8]] = []
  /// The function `help`.
  private var help: LuaReference?
  private var vm: LuaVM { interpreter.vm }

  init(_ interpreter: Interpreter) throws {
    self.interpreter = interpreter
    terminal = Terminal(interpreter.arguments.options.color)
    host = try interpreter.deferred.makeHost()
    locals = terminal.isInput ? try SessionLocals(interpreter.vm) : nil
  }

  /// Runs until the end of the input.
  func run() {
    let program = interpreter.messages.program
    interpreter.messages.program = nil
    if terminal.showsErrors { interpreter.messages.decorate = terminal.decorated }
    defineNames()
    host.session.readsInput = true
    // A session continues where a script would end: the error that is raised then gives the reason.
    host.checking?.onEnd = { _, _ in }
    // On a terminal nothing is stalled: a later line may settle it. A virtual clock stands still
    // while input may come, so it advances before each prompt instead.
    let isVirtual = host.loop.timeSource.isVirtual
    let presence = terminal.isInput && !isVirtual ? host.loop.mailbox.begin() : nil
    let source: any LineSource =
      EditedLines(self, host, interpreter.signals, terminal) ?? PlainLines(self, host, terminal)
    let input = ChunkInput(vm, source, locals)
    self.input = input
    if terminal.isInput { interpreter.signals.catchInterruption(repeatedly: true) }
    loop: while true {
      if terminal.isInput {
        if isVirtual { while !vm.hasRequest, host.loop.turn(mayBlock: true) != .idle {} }
        reportFailures()
      }
      do {
        switch try input.read() {
        case .end: break loop
        case .dropped: continue
        case .command(.leave): break loop
        case .command(let command): try obey(command)
        case .chunk(let chunk): try run(chunk)
        }
      } catch {
        report(error)
      }
    }
    if !(source is EditedLines) { Output.write("\n", toError: false) }
    closeVariables()
    presence?.end()
    if terminal.isInput {
      reportFailures()
      sayWhatGoesOn()
    }
    interpreter.messages.decorate = nil
    interpreter.messages.program = program
    interpreter.signals.catchInterruption()
  }

  /// The lines of a chunk that isn't complete yet.
  var pending: [UInt8] { input?.pending ?? [] }

  /// Names for sessions only: scripts have just the standard ones.
  private func defineNames() {
    try? vm.setGlobal("flow", .reference(host.module))
    help = try? vm.makeFunction { [unowned self] call in
      let about = call.count == 0 ? nil : try call.value(1)
      Output.write(host.help(about: about, columns: terminal.size.columns), toError: false)
      return call.answer()
    }
    if let help { try? vm.setGlobal("help", .reference(help)) }
  }

  // MARK: Running

  private func run(_ chunk: ChunkInput.Chunk) throws {
    let values: [LuaValue]
    do {
      values = try call(chunk.function)
    } catch {
      // Another attempt may continue at the place of this one.
      if !chunk.isContinuation { input?.finish(nil, hasResult: false) }
      throw error
    }
    // Only a terminal has `.save`; piped input may be endless.
    if terminal.isInput {
      if chunk.isContinuation, chunk.saved.isWhole, !transcript.isEmpty { transcript.removeLast() }
      transcript.append(chunk.saved.text)
    }
    input?.finish(chunk, hasResult: !values.isEmpty)
    show(values)
  }

  private func call(_ function: LuaReference) throws -> [LuaValue] {
    try asChunk {
      try terminal.isInput ? vm.callSessionChunk(function) : vm.call(function, traceback: true)
    }
  }

  /// Runs code. Ctrl-C interrupts it and everything it starts.
  private func asChunk<Result>(_ body: () throws -> Result) throws -> Result {
    // Otherwise each line has its own first Ctrl-C.
    if !terminal.isInput { interpreter.signals.catchInterruption() }
    host.beginChunk()
    defer {
      host.endChunk()
      if !terminal.isInput { interpreter.signals.stopAsking() }
    }
    let result = try body()
    // An interrupted op fails, but the chunk that ran it doesn't report the interruption.
    if let error = host.chunkInterruption { throw error }
    return result
  }

  private func show(_ values: [LuaValue]) {
    guard let first = values.first else { return }
    if terminal.isInput { try? vm.setGlobal("_", first) }
    if terminal.showsResults {
      let formatter = ResultFormatter(
        host, columns: terminal.size.columns, hasColors: terminal.hasColors)
      for value in values {
        let text = isHelp(value) ? Self.helpHint : formatter.text(of: value)
        Output.write(styled: text + "\n", toError: false)
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

  private static let helpHint: ByteString =
    "help(flow.exec), or help \"exec\", describes something; help() says more"

  private func isHelp(_ value: LuaValue) -> Bool {
    guard case .reference(let reference) = value, reference.vm === vm, let help else {
      return false
    }
    return vm.areSame(reference, help)
  }

  // MARK: Errors

  private func report(_ error: any Error) {
    guard terminal.isInput else { return interpreter.messages.report(error) }
    let raised = (error as? LuaSessionError)?.error ?? error
    if let raised = raised as? LuaError {
      try? vm.setGlobal("_error", raised.value ?? .string(raised.message))
    }
    guard let session = error as? LuaSessionError else {
      return interpreter.messages.report(error)
    }
    interpreter.messages.report(described(session))
  }

  /// The error with its traceback, and with the fields of an error value that is a table.
  private func described(_ error: LuaSessionError) -> any Error {
    guard let raised = error.error as? LuaError, let value = raised.value else {
      return error.error
    }
    var text = raised.message
    if case .reference(let reference) = value {
      // Its text says what it is.
      if host.isError(value) || vm.hasMetafield("__tostring", reference) { return raised }
      let formatter = ResultFormatter(host, columns: terminal.size.columns, hasColors: false)
      let shown = formatter.text(of: value)
      text = "error: \(shown)"
    }
    if let traceback = error.traceback { text = "\(text)\n\(traceback)" }
    return LuaError(raised.code, text)
  }

  /// Reports all unobserved failures so far.
  func reportFailures() { interpreter.messages.reportFailures(of: host) }

  // MARK: The end

  /// Closes the variables declared with `<close>`.
  private func closeVariables() {
    guard let locals else { return }
    do { try asChunk { try locals.close() } } catch { report(error) }
  }

  /// Lists the tasks that the end waits for.
  private func sayWhatGoesOn() {
    let names = host.pendingNames
    guard !names.isEmpty else { return }
    let most = 5
    var list = names.prefix(most).map(\.description).joined(separator: ", ")
    if names.count > most { list += " and \(names.count - most) more" }
    let what = names.count == 1 ? "1 task" : "\(names.count) tasks"
    interpreter.messages.say(ByteString("waiting for \(what): \(list) (Ctrl-C cancels)" as String))
  }

  // MARK: Commands

  private func obey(_ command: SessionCommand) throws {
    switch command {
    case .leave: return
    case .load(let path): try load(path)
    case .save(let path): save(path)
    case .edit: try edit()
    }
  }

  private func load(_ path: [UInt8]) throws {
    guard !path.isEmpty else { return interpreter.messages.say(".load needs the name of a file") }
    guard let text = TextFile.read(ByteString(path)) else {
      let reason = String(cString: strerror(errno))
      return interpreter.messages.say("can't read '\(ByteString(path))': \(ByteString(reason))")
    }
    // A first line with `#` is skipped, as a script's is.
    var code = text
    if code.first == UInt8(ascii: "#") {
      code = Array(code.drop { $0 != UInt8(ascii: "\n") })
    }
    guard let input else { return }
    try run(try input.compile(code, name: "@" + String(decoding: path, as: UTF8.self)))
  }

  private func save(_ path: [UInt8]) {
    guard !path.isEmpty else { return interpreter.messages.say(".save needs the name of a file") }
    let text = transcript.flatMap { $0 + [UInt8(ascii: "\n")] }
    if let reason = TextFile.write(ByteString(text), to: ByteString(path)) {
      interpreter.messages.say("can't write '\(ByteString(path))': \(ByteString(reason))")
    }
  }

  private func edit() throws {
    guard let input else { return }
    let folder = Terminal.variable("TMPDIR") ?? "/tmp"
    var name = "\(folder)/flowlua-XXXXXX.lua".bytes.map { CChar(bitPattern: $0) } + [0]
    let file = mkstemps(&name, 4)
    let path = ByteString(name.dropLast().map { UInt8(bitPattern: $0) })
    guard file >= 0 else {
      let reason = String(cString: strerror(errno))
      return interpreter.messages.say("can't write '\(path)': \(ByteString(reason))")
    }
    close(file)
    defer { unlink(name) }
    if let last = transcript.last { _ = TextFile.write(ByteString(last) + "\n", to: path) }
    let editor =
      Terminal.variable("VISUAL") ?? Terminal.variable("EDITOR") ?? "vi"
    // The variable may contain options, as it may for a shell.
    guard system("\(editor) '\(path)'" as String) == 0 else {
      return interpreter.messages.say(
        "the editor '\(ByteString(editor))' has failed: nothing is run")
    }
    var text = TextFile.read(path) ?? []
    while let last = text.last, last == 10 || last == 32 { text.removeLast() }
    if text.isEmpty { return }
    input.remember(text)
    Output.write(ByteString(text) + "\n", toError: false)
    try run(try input.compile(text, name: "=stdin"))
  }
}

/// A command to the session itself.
enum SessionCommand: Equatable {
  /// Leaves, as Ctrl-D does.
  case leave
  /// Runs a file as if its lines were typed.
  case load([UInt8])
  /// Writes the chunks so far to a file.
  case save([UInt8])
  /// Opens the last chunk, or a file's, in an editor, and runs the result.
  case edit

  /// nil for a line of Lua.
  ///
  /// - Parameters:
  ///   - line: The typed line.
  ///   - isDefined: Whether a variable has this name: a script may define its own `exit`.
  init?(_ line: [UInt8], isDefined: (String) -> Bool) {
    let text = line.trimmed(\.isBlank)
    let name = text.prefix { !$0.isBlank }
    let word = String(decoding: name, as: UTF8.self)
    var rest = Array(text.dropFirst(name.count).drop(while: \.isBlank))
    // A name may be in quotes.
    if rest.count > 1, let quote = rest.first, quote == rest.last,
      quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
    {
      rest = Array(rest.dropFirst().dropLast())
    }
    switch word {
    case "exit", "quit", "exit()", "quit()":
      guard rest.isEmpty, !isDefined(String(word.prefix(4))) else { return nil }
      self = .leave
    case ".load": self = .load(rest)
    case ".save": self = .save(rest)
    case ".edit":
      guard rest.isEmpty else { return nil }
      self = .edit
    default: return nil
    }
  }
}
