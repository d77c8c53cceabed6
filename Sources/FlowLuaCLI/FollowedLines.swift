internal import FlowEngine
internal import Glibc

/// Prints each line of the summaries on stderr as it happens: `--follow`.
enum FollowedLines {
  /// The sink that prints the lines of all runs.
  static func sink(_ form: SummaryOptions, _ color: LongOptions.Color) -> any EventSink {
    let isTerminal = isatty(STDERR_FILENO) != 0
    let hasColors = (isTerminal || color == .always) && Terminal(color).hasColors
    return SummaryFollower(form) { lines, meaning, run in
      var text: [UInt8] = []
      // The last one ends with the end of its line.
      for line in lines.bytes.dropLast().split(
        separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      {
        let escape = hasColors ? Self.escape(meaning) : nil
        if let escape { text += "\u{1B}[\(escape)m".utf8 }
        if let run { text += run.onOneLine.bytes + Array(" | ".utf8) }
        text += isTerminal ? ByteString(Array(line)).forTerminal.bytes : Array(line)
        if escape != nil { text += "\u{1B}[0m".utf8 }
        text.append(UInt8(ascii: "\n"))
      }
      Output.write(styled: ByteString(text), toError: true)
    }
  }

  /// The number of a colour in an escape sequence; nil for the terminal's own.
  private static func escape(_ meaning: SummaryFollower.Meaning) -> String? {
    switch meaning {
    case .frame: "2"
    case .event: nil
    case .success: "32"
    case .failure: "31"
    case .retry: "33"
    }
  }
}
