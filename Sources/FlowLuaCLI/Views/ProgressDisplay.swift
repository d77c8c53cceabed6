internal import FlowEngine
internal import FlowSystem
internal import LuaVM

/// Shows what the runs of a script execute, on the terminal of stderr: a tree below all other output.
///
/// It draws when something has changed and when the loop is idle, at most ten times a second. It has no
/// timer, which would keep a script alive, and it follows no runs before the tree appears. All other output removes the tree first. Failures, and the ends
/// of groups, are printed above it, unless everything ends before the tree appears.
final class ProgressDisplay: ProgressTree.Observer {
  private var tree: ProgressTree?
  private let lines: ProgressLines
  /// The time of the next drawing; nil while nothing is in progress.
  private var due: Int64?
  /// Whether the tree has appeared.
  private var isVisible = false
  /// The notices for when the tree appears, or when the terminal is free.
  private var waiting: [ProgressNotice] = []
  /// How many further failures there were meanwhile.
  private var dropped = 0
  /// The text that was drawn last, and for which size.
  private var drawn: (text: ByteString, columns: Int, rows: Int)?

  /// The time between two drawings.
  private static let interval: Int64 = 100_000_000
  /// Runs that end sooner aren't shown.
  private static let delay: Int64 = 200_000_000
  /// The time between two looks at the size of the terminal.
  private static let patience: Int64 = 250_000_000
  /// The most that waits.
  private static let waitingLimit = 100

  init(_ color: LongOptions.Color) {
    lines = ProgressLines(isUTF8: Self.usesUTF8, hasColors: Terminal(color).hasColors)
  }

  /// Whether there is a terminal that can show it. A program that reads stdout, such as `tee`, may write to the
  /// same terminal at any time: then there is none.
  static var isPossible: Bool {
    guard isatty(STDERR_FILENO) != 0, !flowsystem_is_stdout_piped(),
      let terminal = environment("TERM")
    else { return false }
    return terminal != "dumb"
  }

  private static var usesUTF8: Bool {
    for name: String in ["LC_ALL", "LC_CTYPE", "LANG"] {
      guard let value = environment(name) else { continue }
      let text = value.lowercased
      return text.contains("utf-8") || text.contains("utf8")
    }
    return false
  }

  /// Makes the output of scripts remove the tree first.
  var outputGuard: LuaOutputGuard {
    LuaOutputGuard(
      hide: { flowsystem_hide_status() }, wrote: { flowsystem_note_output(true, $0) },
      includesStdout: isatty(STDOUT_FILENO) != 0)
  }

  /// Begins to show the runs of a loop.
  func watch(_ loop: FlowEventLoop) {
    let tree = ProgressTree(of: loop)
    tree.observer = self
    self.tree = tree
    // The time of a virtual clock doesn't pass while ops execute.
    if loop.timeSource.isVirtual {
      loop.eventSinks.append(tree)
    } else {
      tree.followLate(after: Self.delay)
    }
    loop.onRest = { [unowned self] in rest() }
    flowsystem_catch_pauses()
    flowsystem_catch_quit()
    // Scripts can end by os.exit too.
    atexit { flowsystem_hide_status() }
  }

  func progressChanged(at time: Int64) -> Int64 {
    let now = LuaVM.monotonicTime
    if now >= firstDue(now) { draw(now) }
    return time.later(by: max(1_000_000, (due ?? now) - now))
  }

  /// The loop is about to wait; returns after which time it wants to be called again.
  private func rest() -> Int64? {
    guard let tree else { return nil }
    let now = LuaVM.monotonicTime
    if let left = tree.followIfDue(at: now) { return left }
    if tree.isEmpty { return nil }
    let next = firstDue(now)
    if now < next { return next - now }
    draw(now)
    return Self.patience
  }

  /// The time of the next drawing, which is set if nothing has been drawn yet.
  private func firstDue(_ now: Int64) -> Int64 {
    let next = due ?? (tree?.inProgressSince ?? now) + Self.delay
    due = next
    return next
  }

  func progressNoticed(_ notice: ProgressNotice) {
    if isVisible, flowsystem_takes_lines(), flowsystem_takes_output() {
      printWaiting()
      print(lines.lines(notice))
    } else if waiting.count < Self.waitingLimit {
      waiting.append(notice)
    } else if case .failure = notice {
      dropped += 1
    }
  }

  func progressEnded() {
    // A stopped terminal keeps the tree until there is other output, which has to wait.
    if !waiting.isEmpty || flowsystem_takes_output() { end() }
    if isVisible, !waiting.isEmpty {
      if !flowsystem_takes_lines() { Output.write("\n", toError: true) }
      printWaiting()
    }
    due = nil
    isVisible = false
    waiting = []
    dropped = 0
    tree?.awaitChange()
  }

  /// Removes the tree.
  func end() {
    flowsystem_hide_status()
    drawn = nil
  }

  private func print(_ text: ByteString) {
    flowsystem_begin_line()
    Output.write(styled: text, toError: true)
    flowsystem_note_output(true, true)
  }

  private func printWaiting() {
    for notice in waiting { print(lines.lines(notice)) }
    if dropped > 0 { print(lines.moreFailures(dropped)) }
    waiting = []
    dropped = 0
  }

  private func draw(_ now: Int64) {
    due = now + Self.interval
    // No frame is worth a wait.
    guard let tree, flowsystem_takes_output() else { return }
    isVisible = true
    if flowsystem_takes_lines() { printWaiting() }
    let (columns, rows) = Self.size
    let limit = min(12, max(1, rows / 3))
    let text: ByteString
    if limit < 3, let (row, others) = tree.mainRow() {
      text = lines.line(row, others: others, columns: columns)
    } else {
      text = lines.tree(tree.rows(atMost: limit), columns: columns)
    }
    if text.isEmpty { return flowsystem_hide_status() }
    if let drawn, drawn.text == text, drawn.columns == columns, drawn.rows == rows,
      flowsystem_is_status_shown()
    {
      return flowsystem_place_cursor()
    }
    let isShown = text.withUnsafeBytes { bytes in
      flowsystem_show_status(bytes.baseAddress, bytes.count)
    }
    drawn = isShown ? (text, columns, rows) : nil
  }

  private static var size: (columns: Int, rows: Int) {
    var (columns, rows): (Int32, Int32) = (0, 0)
    guard flowsystem_status_size(&columns, &rows) else { return (80, 24) }
    return (Int(columns), Int(rows))
  }
}

/// Prints the progress of runs on stderr as lines, for logs: `--progress=plain`. There is one for each failure, and
/// every ten seconds one for the execution that matters most.
final class PlainProgress: ProgressTree.Observer {
  private var tree: ProgressTree?
  private var loop: FlowEventLoop?
  private let lines: ProgressLines
  /// When the first run that is in progress started, and the time of the next line, in nanoseconds of the
  /// loop's clock.
  private var began: Int64?
  private var due: Int64 = 0

  /// The time between two lines.
  private static let interval: Int64 = 10_000_000_000

  init(_ color: LongOptions.Color) {
    lines = ProgressLines(hasColors: color == .always)
  }

  /// Begins to show the runs of a loop.
  func watch(_ loop: FlowEventLoop) {
    let tree = ProgressTree(of: loop)
    tree.observer = self
    self.tree = tree
    self.loop = loop
    loop.eventSinks.append(tree)
    // On a virtual clock time passes between two events only.
    if !loop.timeSource.isVirtual { loop.onRest = { [unowned self] in rest() } }
  }

  func progressChanged(at time: Int64) -> Int64 {
    begin(at: time)
    // A virtual clock at its end stands still: no next line is due.
    if time >= due, due != .max { print(at: time) }
    return due
  }

  private func rest() -> Int64? {
    guard let tree, let loop, !tree.isEmpty else { return nil }
    let time = loop.now()
    begin(at: time)
    if time >= due { print(at: time) }
    return due - time
  }

  private func begin(at time: Int64) {
    if began != nil { return }
    began = time
    due = time.later(by: Self.interval)
  }

  func progressNoticed(_ notice: ProgressNotice) {
    guard case .failure = notice else { return }
    Output.write(styled: lines.lines(notice), toError: true)
  }

  func progressEnded() {
    began = nil
    tree?.awaitChange()
  }

  private func print(at time: Int64) {
    let began = began ?? time
    due = time.later(by: Self.interval - (time - began) % Self.interval)
    guard let (row, others) = tree?.mainRow() else { return }
    let passed = ProgressLines.duration(Double(time - began) / 1e9)
    Output.write(
      styled: ByteString("[\(passed)] \(lines.plainLine(row, others: others))\n"), toError: true)
  }
}
