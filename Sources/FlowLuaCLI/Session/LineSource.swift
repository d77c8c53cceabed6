internal import CFlowSystem
internal import FlowEngine
internal import FlowScripting
internal import Glibc
internal import LuaVM

/// What asking for a line has come to.
enum LineAnswer {
  /// A line without its end. It has line breaks inside when a block was pasted.
  case line([UInt8])
  /// Ctrl-C: what was typed is dropped.
  case dropped
  /// The end of the input.
  case end
}

/// Where lines come from.
protocol LineSource: AnyObject {
  /// Whether a line begins with the indentation that it is asked for with.
  var indents: Bool { get }

  /// Asks for a line, which begins with the indentation where the user can change it.
  func readLine(_ prompt: ByteString, indentation: [UInt8]) -> LineAnswer

  /// Keeps a chunk, of as many lines as it has, to be recalled.
  func remember(_ chunk: [UInt8])
}

/// Lines as they come: from a pipe or a file, or from a terminal without a library to edit them.
final class PlainLines: LineSource {
  // Unowned: the session holds this.
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
    Output.write(prompt, toError: false)
    if terminal.isInput, waitForInput() == .dropped {
      Output.write("\n", toError: false)
      return .dropped
    }
    var count = 0
    guard let line = flowsystem_read_line(&count) else { return .end }
    defer { free(line) }
    var bytes = Array(UnsafeRawBufferPointer(start: line, count: count))
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    // A terminal shows what is typed. Of other input lua5.4's line editing shows it.
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

/// Takes note of input, which somebody else reads.
final class InputFlag: LoopJob {
  private(set) var isSet = false

  func run() { isSet = true }

  /// Whether there was input since the last time.
  func take() -> Bool {
    defer { isSet = false }
    return isSet
  }
}
