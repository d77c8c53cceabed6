internal import FlowEngine
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// The outcome of reading a line.
enum LineAnswer {
  /// A line without its end. It contains line breaks if a block was pasted.
  case line([UInt8])
  /// Ctrl-C: the typed text is dropped.
  case dropped
  /// The end of the input.
  case end
}

/// A source of lines.
protocol LineSource: AnyObject {
  /// Whether lines include the indentation that was passed to the prompt.
  var indents: Bool { get }

  /// Reads a line, which begins with the indentation if the user can change it.
  func readLine(_ prompt: ByteString, indentation: [UInt8]) -> LineAnswer

  /// Adds a chunk to the history, of any number of lines.
  func remember(_ chunk: [UInt8])
}

/// Unedited lines: from a pipe or a file, or from a terminal without an editing library.
final class PlainLines: LineSource {
  // Unowned: the session owns this object.
  private unowned let session: Session
  private let host: ScriptHost
  private let terminal: Terminal

  init(_ session: Session, _ host: ScriptHost, _ terminal: Terminal) {
    self.session = session
    self.host = host
    self.terminal = terminal
  }

  var indents: Bool { false }

  func remember(_ chunk: [UInt8]) {}

  func readLine(_ prompt: ByteString, indentation: [UInt8]) -> LineAnswer {
    // A script's own, which may have colours.
    Output.write(styled: prompt, toError: false)
    if terminal.isInput, waitForInput() == .dropped {
      Output.write("\n", toError: false)
      return .dropped
    }
    var count = 0
    guard let line = flowsystem_read_line(&count) else { return .end }
    defer { free(line) }
    var bytes = Array(UnsafeRawBufferPointer(start: line, count: count))
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    // A terminal shows the typed text. For other input, lua5.4's line editing echoes it.
    if !terminal.isInput, !bytes.isEmpty || !prompt.bytes.isEmpty {
      Output.write(ByteString(bytes) + "\n", toError: false)
    }
    return .line(bytes)
  }

  private enum Waiting { case readable, dropped }

  /// Runs the loop until a line can be read.
  private func waitForInput() -> Waiting {
    let input = InputFlag()
    guard let watch = try? host.loop.watch(STDIN_FILENO, input) else { return .readable }
    // No status line while there is a prompt.
    flowsystem_lend_terminal(true)
    defer {
      flowsystem_lend_terminal(false)
      watch.end()
    }
    while !flowsystem_has_input() {
      _ = host.loop.turn(mayBlock: true)
      session.reportFailures()
      host.answerTermination()
      if host.vm.takeInterruption() { return .dropped }
    }
    return .readable
  }
}

/// Records that there is input, which other code reads.
final class InputFlag: LoopJob {
  private(set) var isSet = false

  func run() { isSet = true }

  /// Whether there was input since the last time.
  func takeFlag() -> Bool {
    defer { isSet = false }
    return isSet
  }
}
