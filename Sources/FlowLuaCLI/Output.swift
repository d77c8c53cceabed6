internal import CFlowSystem
internal import FlowEngine

/// The output of the program itself. It uses the C streams of Lua's own output, so that the order
/// is kept.
enum Output {
  /// A line on stderr, after the program's name if there is one. As in lua5.4, a zero byte ends the
  /// message.
  static func error(program: ByteString?, _ message: ByteString) {
    let shown = ByteString(Array(message.bytes.prefix { $0 != 0 }))
    write((program.map { $0 + ": " } ?? "") + shown + "\n", toError: true)
  }

  /// Text on stdout or stderr.
  static func write(_ text: ByteString, toError: Bool) {
    text.withUnsafeBytes { bytes in
      flowsystem_write(bytes.baseAddress, bytes.count, toError)
    }
  }
}
