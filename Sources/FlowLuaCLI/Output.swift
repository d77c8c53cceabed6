internal import CFlowSystem
internal import FlowEngine

/// What the program itself prints. It goes through the C streams that Lua's own output goes through, so
/// that the order holds.
enum Output {
  /// A line on stderr, behind the program's name where there is one. As in lua5.4, a zero byte ends the
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
