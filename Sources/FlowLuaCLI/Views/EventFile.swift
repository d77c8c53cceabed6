internal import FlowEngine
internal import FlowSystem
internal import LuaVM

/// Appends each event of all runs as a line of JSON to a file or to stdout: `--events`.
///
/// Each run begins with a line of the kind `run` and ends with one of the kind `end`.
final class EventFile: RunSink {
  struct Failure: Error {
    let message: ByteString
  }

  private let messages: Messages
  /// The file as messages name it.
  private let name: ByteString
  /// Nil after it has been closed.
  private var file: OpaquePointer?
  private var hasComplained = false

  /// How long the end of the program waits for a slow disk or reader, in nanoseconds.
  private static let patience: Int64 = 2_000_000_000

  /// Opens the file; `-` is stdout.
  init(_ path: ByteString, _ messages: Messages) throws(Failure) {
    self.messages = messages
    let isOutput = path == "-"
    name = isOutput ? "stdout" : "'\(path)'"
    // Lines of the script stay whole among those of events.
    if isOutput { flowsystem_write_whole_lines() }
    let characters = path.bytes.map { CChar(bitPattern: $0) } + [0]
    file = flowsystem_line_file_open(isOutput ? nil : characters)
    if file == nil { throw Failure(message: Self.message(name, errno)) }
  }

  func runBegan(_ run: Run) {
    var line = JSONText()
    line.object {
      $0.field("kind", "run")
      $0.field("run", run.identifier)
      $0.field("name", run.loop.secrets.redacted(run.name))
      $0.field("started", run.started)
      $0.field("outer_run", run.outerExecution?.run)
      $0.field("outer_id", run.outerExecution?.id)
    }
    append(line)
  }

  func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {
    var line = JSONText()
    line.append(event)
    append(line)
  }

  func runEnded(_ run: Run) {
    var line = JSONText()
    line.object {
      $0.field("time", run.duration.inSeconds)
      $0.field("kind", "end")
      $0.field("run", run.identifier)
      $0.field("state", run.state.name)
      $0.field("finished_early", run.isFinishedEarly)
      $0.field(errorOf: run, messages.host)
    }
    append(line)
  }

  private func append(_ line: JSONText) {
    guard let file else { return }
    var line = line
    line.append(raw: "\n")
    let problem = line.bytes.withUnsafeBytes { bytes in
      flowsystem_line_file_append(
        file, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    guard problem != 0, !hasComplained else { return }
    hasComplained = true
    messages.say(Self.message(name, problem) + "; the rest is dropped")
  }

  /// Writes what is left; returns whether all events were written.
  func close() -> Bool {
    guard let file else { return true }
    self.file = nil
    var problem: Int32 = 0
    let count = flowsystem_line_file_close(file, Self.patience, &problem)
    if count == 0 { return true }
    let lines: ByteString = count == 1 ? "1 event" : "\(count) events"
    let reason: ByteString =
      problem == 0 ? "nothing reads them" : Self.reason(problem)
    messages.say("\(lines) weren't written to \(name): \(reason)")
    return false
  }

  private static func message(_ name: ByteString, _ problem: Int32) -> ByteString {
    "can't write events to \(name): \(reason(problem))"
  }

  private static func reason(_ problem: Int32) -> ByteString {
    problem == ENOBUFS
      ? "it is written more slowly than events happen"
      : ByteString(String(cString: strerror(problem)))
  }
}

/// Prints each line of the summaries on stderr as it happens: `--follow`.
enum FollowedLines {
  /// The sink that prints the lines of all runs.
  static func sink(_ form: SummaryOptions, _ color: LongOptions.Color) -> any EventSink {
    let isTerminal = isatty(STDERR_FILENO) != 0
    let hasColors = (isTerminal || color == .always) && Terminal(color).hasColors
    return SummaryFollower(form) { lines, meaning, run in
      var text: [UInt8] = []
      // The last one ends with the end of its line.
      for line in lines.bytes.dropLast().split(at: "\n") {
        let escape = hasColors ? Self.escape(meaning) : nil
        if let escape { text += "\u{1B}[\(escape)m".bytes }
        if let run { text += run.onOneLine.bytes + " | ".bytes }
        text += isTerminal ? ByteString(line).forTerminal.bytes : Array(line)
        if escape != nil { text += "\u{1B}[0m".bytes }
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
