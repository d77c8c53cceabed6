internal import FlowEngine

/// The lines that show the rows of a `ProgressTree`, and what it reports.
struct ProgressLines {
  /// Whether the terminal shows UTF-8.
  var isUTF8 = true
  var hasColors = false

  /// The number of cells of a full bar.
  private static let cells = 15
  /// The most characters of a name.
  private static let nameLimit = 160
  /// The most characters of a command or URL.
  private static let workLimit = 60

  // MARK: The tree

  /// The tree, its lines separated by newlines.
  func tree(_ rows: ProgressRows, columns: Int) -> ByteString {
    var lines: [String] = []
    for (index, row) in rows.rows.enumerated() {
      let guides = guides(of: index, in: rows.rows)
      lines.append(line(row, guides, columns))
    }
    if rows.hidden > 0 {
      var line = TerminalLine()
      line.add("\(isUTF8 ? "…" : "...") \(rows.hidden) more", .dim)
      lines.append(line.text(columns: columns, hasColors: hasColors))
    }
    return ByteString(lines.joined(separator: "\n"))
  }

  /// The line of the execution that matters most, where no tree fits.
  func line(_ row: ProgressRow, others: Int, columns: Int) -> ByteString {
    ByteString(line(row, "", columns, others > 0 ? ["\(others) more"] : []))
  }

  /// The line without a bar and of any length.
  func plainLine(_ row: ProgressRow, others: Int) -> String {
    var words = [name(row)]
    if let amount = amount(row) { words.append(amount) }
    if let share = row.share, row.kind != .flow { words.append("\(Self.whole(share * 100))%") }
    let notes = notes(row).map(\.text).joined(separator: ", ")
    return words.joined(separator: " ") + ", \(notes)" + (others > 0 ? "; \(others) more" : "")
  }

  /// The lines that lead from the enclosing rows to a row.
  private func guides(of index: Int, in rows: [ProgressRow]) -> String {
    let depth = rows[index].depth
    guard depth > 0 else { return "" }
    var guides: String = ""
    for level in 1...depth {
      // Whether a row of this level, within the same one, follows.
      let following = rows[(index + 1)...].first { $0.depth <= level }
      let continues = following?.depth == level
      if level == depth {
        guides += isUTF8 ? (continues ? "├─ " : "└─ ") : (continues ? "|- " : "`- ")
      } else {
        guides += continues ? (isUTF8 ? "│  " : "|  ") : "   "
      }
    }
    return guides
  }

  private func line(
    _ row: ProgressRow, _ guides: String, _ columns: Int, _ further: [String] = []
  ) -> String {
    let whole = line(row, guides, further, hasBar: true)
    if whole.width < columns { return whole.text(columns: columns, hasColors: hasColors) }
    return line(row, guides, further, hasBar: false).text(columns: columns, hasColors: hasColors)
  }

  private func line(
    _ row: ProgressRow, _ guides: String, _ further: [String], hasBar: Bool
  ) -> TerminalLine {
    var line = TerminalLine()
    line.add(guides, .dim)
    if row.kind == .endedStep || row.kind == .endedUndo {
      let mark: String = isUTF8 ? (row.failed > 0 ? "✗" : "✓") : (row.failed > 0 ? "x" : "+")
      line.add(mark, row.failed > 0 ? .red : .green)
      let end = row.kept > 0 ? "kept" : Self.precise(row.seconds)
      line.add(" \(name(row)) \(end)", .dim)
      return line
    }
    line.add(name(row))
    let share = row.kind == .flow ? nil : row.share
    if let share, hasBar {
      let (done, rest) = bar(share)
      line.add(" ")
      line.add(done, .green)
      line.add(rest, .dim)
    }
    if let amount = amount(row) { line.add(" \(amount)") }
    if let share { line.add(" \(Self.whole(share * 100))%") }
    for (index, note) in (notes(row) + further.map { ($0, nil) }).enumerated() {
      line.add(index == 0 ? " " : ", ")
      line.add(note.text, note.style)
    }
    return line
  }

  /// The notes of a row after its name and bar.
  private func notes(_ row: ProgressRow) -> [(text: String, style: TerminalLine.Style?)] {
    var notes: [(text: String, style: TerminalLine.Style?)] = []
    if let running = row.running { notes.append(("\(running) running", nil)) }
    if row.kind == .group { notes.append(("\(row.failed) failed", row.failed > 0 ? .red : nil)) }
    if row.kept > 0 { notes.append(("\(row.kept) kept", nil)) }
    if let limit = row.limit {
      notes.append(("queued \(Self.duration(row.seconds)) for limit \(shown(limit))", .yellow))
    } else if row.kind != .group || row.remaining == nil {
      notes.append((Self.duration(row.seconds), nil))
    }
    if let delay = row.retryDelay {
      notes.append(("attempt \(row.attempt) in \(Self.duration(delay))", .yellow))
    } else if row.attempt > 1 {
      notes.append(("attempt \(row.attempt)", .yellow))
    }
    if let work = row.work {
      let more: String = row.furtherWorks > 0 ? " and \(row.furtherWorks) more" : ""
      notes.append((shown(work.truncated(to: Self.workLimit)) + more, .dim))
    }
    if let transition = row.transition { notes.append((shown(transition), .dim)) }
    if let left = row.remaining { notes.append(("\(Self.rounded(left)) left", nil)) }
    return notes
  }

  private func amount(_ row: ProgressRow) -> String? {
    guard let done = row.done else { return nil }
    switch row.kind {
    case .flow:
      guard let total = row.total else { return done > 0 ? "\(number(done)) done" : nil }
      return total > 1 ? "\(number(done))/\(number(total))" : nil
    default: return row.total.map { "\(number(done))/\(number($0))" } ?? number(done)
    }
  }

  private func bar(_ share: Double) -> (done: String, rest: String) {
    let halves = min(
      max(Self.whole((share * Double(Self.cells) * 2).rounded(.down)), 0), Self.cells * 2)
    let full = halves / 2
    guard isUTF8 else {
      return (
        String(repeating: "#" as Character, count: full),
        String(repeating: "-" as Character, count: Self.cells - full)
      )
    }
    let half: String = halves % 2 == 1 ? "▌" : ""
    return (
      String(repeating: "█" as Character, count: full) + half,
      String(repeating: "░" as Character, count: Self.cells - full - half.unicodeScalars.count)
    )
  }

  // MARK: Notices

  /// The lines for something that the tree reports once, with their ends.
  func lines(_ notice: ProgressNotice) -> ByteString {
    switch notice {
    case .failure(let failure): lines(failure)
    case .groupEnd(let end): ByteString(line(end))
    }
  }

  /// The line that stands for failures without lines of their own.
  func moreFailures(_ count: Int) -> ByteString {
    var line = TerminalLine()
    line.add("\(isUTF8 ? "…" : "...") \(count) more failure\(count == 1 ? "" : "s")", .red)
    return ByteString(line.text(columns: .max, hasColors: hasColors) + "\n")
  }

  private func lines(_ failure: ProgressNotice.Failure) -> ByteString {
    let attempts = failure.attempts > 1 ? " after \(failure.attempts) attempts" : ""
    let what = failure.isOfUndo ? " couldn't be undone: " : " failed\(attempts): "
    let head = failure.path.onOneLine + what
    var lines = failure.message.bytes.split(
      separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false
    ).map { ByteString($0).forTerminal.bytes }
    while lines.count > 1, lines.last?.isEmpty == true { lines.removeLast() }
    lines[0] = head.bytes + lines[0]
    if failure.isLastOfItsKind {
      lines.append("(more failures like this are only counted)".bytes)
    }
    var text: [UInt8] = []
    for line in lines {
      if hasColors { text += "\u{1B}[31m".bytes }
      text += line
      if hasColors { text += "\u{1B}[0m".bytes }
      text.append(UInt8(ascii: "\n"))
    }
    return ByteString(text)
  }

  private func line(_ end: ProgressNotice.GroupEnd) -> String {
    var line = TerminalLine()
    let isWhole = end.failed == 0 && !end.isStopped
    if isUTF8 { line.add(isWhole ? "✓ " : "✗ ", isWhole ? .green : .red) }
    line.add("\(shown(end.path)) \(end.done)/\(end.total)")
    let rest = end.done < end.total ? "\(end.total - end.done) " : ""
    line.add(end.isStopped ? ", \(rest)stopped after " : " in ")
    line.add(Self.precise(end.seconds))
    if end.kept > 0 { line.add(", \(end.kept) kept") }
    if end.failed > 0 {
      line.add(", ")
      line.add("\(end.failed) failed", .red)
    }
    return line.text(columns: .max, hasColors: hasColors) + "\n"
  }

  // MARK: Words

  private func name(_ row: ProgressRow) -> String {
    let isUndo = row.kind == .undo || row.kind == .endedUndo
    return isUndo ? "undo \(shown(row.name))" : shown(row.name)
  }

  /// A text of a script, on one line and not too long.
  private func shown(_ text: ByteString) -> String {
    let line = text.truncated(to: Self.nameLimit).onOneLine.description
    guard !isUTF8 else { return line }
    return String(String.UnicodeScalarView(line.unicodeScalars.map { $0.isASCII ? $0 : "?" }))
  }

  /// Any script chooses these numbers.
  private func number(_ value: Double) -> String {
    if let integer = Int(exactly: value) { return "\(integer)" }
    return value.isFinite
      ? FlowValue.number((value * 100).rounded() / 100).logText.description : "\(value)"
  }

  private static func whole(_ value: Double) -> Int { Int(exactly: value.rounded()) ?? 0 }

  /// Whole seconds, or minutes with them.
  static func duration(_ seconds: Double) -> String {
    guard seconds < 360_000, let all = Int(exactly: seconds.rounded(.down)) else { return ">99h" }
    if all < 60 { return "\(all)s" }
    if all < 3600 { return "\(all / 60)m \(all % 60)s" }
    return "\(all / 3600)h \(all / 60 % 60)m"
  }

  /// The time of an estimate, rounded up: to ten seconds from a minute on, to minutes from ten on.
  private static func rounded(_ seconds: Double) -> String {
    let unit: Double = seconds <= 60 ? 1 : seconds <= 600 ? 10 : 60
    let rounded = (seconds / unit).rounded(.up) * unit
    if rounded >= 3600 || rounded < 60 { return duration(max(1, rounded)) }
    guard let all = Int(exactly: rounded) else { return ">99h" }
    return all % 60 == 0 ? "\(all / 60)m" : "\(all / 60)m \(all % 60)s"
  }

  /// The time of something that has ended: below ten seconds with a decimal.
  private static func precise(_ seconds: Double) -> String {
    guard seconds < 9.95 else { return duration(seconds) }
    let tenths = whole(seconds * 10)
    return "\(tenths / 10).\(tenths % 10)s"
  }
}
