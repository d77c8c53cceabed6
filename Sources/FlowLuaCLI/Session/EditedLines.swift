internal import FlowEngine
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// Lines that a library lets the user edit while the loop runs.
final class EditedLines: LineSource {
  // Unowned: the session owns this object.
  private unowned let session: Session
  private let host: ScriptHost
  private let completer: Completer
  private let history: History
  private var finished: LineAnswer?
  /// The characters at which words begin, for the library. The two never change.
  private let codeBreaks = strdup(" \t\n\"\\'`@$><=;:|&{}()[],+-*/%^~#.!?" as String)
  private let textBreaks = strdup("\"'" as String)

  /// nil if the input isn't an editable terminal, or if there is no library.
  init?(_ session: Session, _ host: ScriptHost, _ signals: Signals, _ terminal: Terminal) {
    guard terminal.canEdit else { return nil }
    // Names the library's file; a name without a file, such as "none", selects plain lines.
    let library = Terminal.variable("FLOWLUA_READLINE")
    self.session = session
    self.host = host
    completer = Completer(host, session.locals)
    history = History()
    var callbacks = flowsystem_editor_callbacks()
    // Unretained. Safe: the library calls only within `readLine` of this object.
    callbacks.context = Unmanaged.passUnretained(self).toOpaque()
    callbacks.line = { EditedLines.of($0)?.finish($1) }
    callbacks.breaks = { EditedLines.of($0)?.breaks($1, $2) ?? UnsafePointer(EditedLines.none) }
    callbacks.complete = { EditedLines.of($0)?.complete($1, $2, $3) }
    guard flowsystem_editor_open(library, &callbacks) else { return nil }
    if let note = history.load({ flowsystem_editor_add_history($0) }) {
      Output.write("flowlua: " + note + "\n", toError: true)
    }
  }

  deinit {
    free(codeBreaks)
    free(textBreaks)
  }

  // Immutable, and never freed.
  private nonisolated(unsafe) static let none = strdup("" as String)

  private static func of(_ context: UnsafeMutableRawPointer?) -> EditedLines? {
    context.map { Unmanaged<EditedLines>.fromOpaque($0).takeUnretainedValue() }
  }

  func remember(_ chunk: [UInt8]) {
    guard let entry = history.entry(chunk) else { return }
    (entry.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer {
      if let base = $0.baseAddress { flowsystem_editor_add_history(base) }
    }
    if let note = history.append(entry) {
      Output.write("flowlua: " + note + "\n", toError: true)
    }
  }

  var indents: Bool { true }

  func readLine(_ prompt: ByteString, indentation: [UInt8]) -> LineAnswer {
    finished = nil
    let input = InputFlag()
    guard let watch = try? host.loop.watch(STDIN_FILENO, input) else { return .end }
    defer { watch.end() }
    Output.write("", toError: false)
    flowsystem_editor_begin_line()
    let shown = prompt.bytes.prefix { $0 != 0 }.map { CChar(bitPattern: $0) } + [0]
    flowsystem_editor_begin(shown)
    if !indentation.isEmpty {
      flowsystem_editor_insert(indentation.map { CChar(bitPattern: $0) } + [0])
    }
    while true {
      if let finished { return finished }
      flowsystem_editor_await_output()
      _ = host.loop.turn(mayBlock: true)
      session.reportFailures()
      flowsystem_editor_settle_output()
      host.answerTermination()
      if host.vm.takeInterruption() {
        flowsystem_editor_drop()
        return .dropped
      }
      if input.takeFlag() { flowsystem_editor_read() }
    }
  }

  private func finish(_ line: UnsafePointer<CChar>?) {
    guard let line else {
      finished = .end
      return
    }
    finished = .line(Array(UnsafeRawBufferPointer(start: line, count: strlen(line))))
  }

  private func breaks(_ line: UnsafePointer<CChar>?, _ point: Int) -> UnsafePointer<CChar>? {
    let before = UnsafeRawBufferPointer(start: line, count: line == nil ? 0 : point)
    let context = CodeContext(session.pending + Array(before))
    return UnsafePointer(context.isInString ? textBreaks : codeBreaks)
  }

  private func complete(_ line: UnsafePointer<CChar>?, _ start: Int, _ end: Int) {
    guard let line, start >= 0, start <= end, end <= strlen(line) else { return }
    let before = Array(UnsafeRawBufferPointer(start: line, count: end))
    for match in completer.matches(before, wordStart: start, after: session.pending) {
      (match.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer {
        if let base = $0.baseAddress { flowsystem_editor_add_match(base) }
      }
    }
  }
}
