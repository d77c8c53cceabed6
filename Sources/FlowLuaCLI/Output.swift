internal import CFlowSystem
internal import FlowEngine
internal import Glibc

/// The output of the program itself. It uses the C streams of Lua's own output, so that the order
/// is kept.
enum Output {
  /// A line on stderr, after the program's name if there is one. As in lua5.4, a zero byte ends the
  /// message.
  ///
  /// - Parameters:
  ///   - program: The program's name.
  ///   - message: The message.
  ///   - style: Adds colours to it; nil for none.
  static func error(
    program: ByteString?, _ message: ByteString, style: ((ByteString) -> ByteString)? = nil
  ) {
    let text = shown(ByteString(Array(message.bytes.prefix { $0 != 0 })), toError: true)
    let name = program.map { shown($0, toError: true) + ": " } ?? ""
    write(styled: name + (style?(text) ?? text) + "\n", toError: true)
  }

  /// Text on stdout or stderr. Names, errors and output of programs in it may come from anywhere: on a terminal they must
  /// not move the cursor, hide lines or set the title.
  static func write(_ text: ByteString, toError: Bool) {
    write(styled: shown(text, toError: toError), toError: toError)
  }

  /// Text on stdout or stderr that is for the terminal as it is: with colours around texts that have no control
  /// characters any more.
  static func write(styled text: ByteString, toError: Bool) {
    text.withUnsafeBytes { bytes in
      flowsystem_write(bytes.baseAddress, bytes.count, toError)
    }
  }

  private static func shown(_ text: ByteString, toError: Bool) -> ByteString {
    isatty(toError ? STDERR_FILENO : STDOUT_FILENO) != 0 ? text.forTerminal : text
  }
}
