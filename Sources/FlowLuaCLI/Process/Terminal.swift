internal import FlowEngine
internal import FlowSystem

/// The capabilities of the terminal, if there is one.
struct Terminal {
  /// Whether lines come from a terminal.
  let isInput = isatty(STDIN_FILENO) != 0
  /// Whether results are shown on one.
  let showsResults = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0
  /// Whether errors are shown on one.
  let showsErrors = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0
  /// Whether it can move its cursor.
  private let isSmart = !["", "dumb"].contains(Self.variable("TERM") ?? "")

  private let color: LongOptions.Color

  init(_ color: LongOptions.Color) { self.color = color }

  /// Whether lines can be edited on it.
  var canEdit: Bool { showsResults && isSmart }

  /// Whether colours are wanted on it.
  var hasColors: Bool {
    switch color {
    case .always: true
    case .never: false
    case .auto: isSmart && (Self.variable("NO_COLOR") ?? "").isEmpty
    }
  }

  var size: (columns: Int, rows: Int) {
    var columns: Int32 = 0
    var rows: Int32 = 0
    flowsystem_terminal_size(&columns, &rows)
    return (Int(columns), Int(rows))
  }

  /// A variable of the environment.
  static func variable(_ name: String) -> String? {
    environment(name)?.description
  }

  /// An error for a person: without the frames of this program, and with the message in colour.
  func decorated(_ text: ByteString) -> ByteString {
    var lines = text.split(at: "\n")
    let heading = "stack traceback:".bytes
    guard let start = lines.lastIndex(where: { $0.elementsEqual(heading) }) else {
      return colored(text.bytes, "31")
    }
    lines = lines[...start] + lines[(start + 1)...].filter { !Self.isHostFrame($0) }
    let message = Array(lines[..<start].joined(separator: [UInt8(ascii: "\n")]))
    let frames = lines[(start + 1)...]
    if frames.isEmpty { return colored(message, "31") }
    let rest = Array(lines[start...].joined(separator: [UInt8(ascii: "\n")]))
    return colored(message, "31") + "\n" + colored(rest, "2")
  }

  /// Frames without a name; only this program uses these terms.
  private static func isHostFrame(_ line: ArraySlice<UInt8>) -> Bool {
    line.equals("\t[C]: in ?")
  }

  private func colored(_ text: [UInt8], _ color: String) -> ByteString {
    guard hasColors else { return ByteString(text) }
    return ByteString("\u{1B}[\(color)m".bytes + text + "\u{1B}[0m".bytes)
  }
}
