// The tables of a report.
extension RunReport {
  /// What was undone, what couldn't be, and what is being undone.
  static func appendUndos(
    _ numbers: RunStatistics, of run: RunSpans, to text: inout MarkdownText
  ) {
    if run.undos.isEmpty { return }
    text.append("\n### Undos\n")
    let ops = numbers.byOp.filter { $0.undone > 0 || $0.undosFailed > 0 }
      .sorted { ($0.undoTotal, $1.name) > ($1.undoTotal, $0.name) }
    if !ops.isEmpty {
      text.append("\n| op | undone | failed | total | longest |\n|---|---:|---:|---:|---:|\n")
    }
    for op in ops.prefix(mostLines) {
      text.appendRow([
        cell(op.name), "\(op.undone)", "\(op.undosFailed)", Durations.text(of: op.undoTotal),
        Durations.text(of: op.longestUndo),
      ])
    }
    if ops.count > mostLines {
      text.append("\n\(ops.count) ops; the table has those with the greatest totals.\n")
    }
    let open = run.undos.filter { $0.outcome == .running }
    for undo in open.prefix(mostLines) {
      let path = MarkdownText.code(run.path(of: undo), limit: 120)
      text.append("\n\(path) is being undone for \(Durations.text(of: undo.duration)).\n")
    }
  }

  static func appendOps(_ numbers: RunStatistics, to text: inout MarkdownText) {
    let ops = numbers.byOp.filter { $0.runs > 0 || $0.kept > 0 }
    if ops.isEmpty { return }
    let hasKept = numbers.kept > 0
    var head: [ByteString] = ["op", "runs"]
    if hasKept { head.append("kept") }
    head += ["failed", "retried", "total", "median", "95 %", "longest", "longest queued"]
    text.append("\n### Ops\n\n")
    text.appendRow(head)
    text.append("|---|\(ByteString(String(repeating: "---:|", count: head.count - 1)))\n")
    for op in ops.prefix(mostLines) {
      var row: [ByteString] = [cell(op.name), "\(op.runs)"]
      if hasKept { row.append("\(op.kept)") }
      row += ["\(op.failed)", "\(op.retried)"]
      row += [op.total, op.median, op.percentile95, op.longest, op.longestQueued]
        .map { Durations.text(of: $0) }
      text.appendRow(row)
    }
    if ops.count > mostLines {
      text.append("\n\(ops.count) ops; the table has those with the greatest totals.\n")
    }
  }

  static func appendWorks(
    _ works: [WorkStatistics.Tally], to text: inout MarkdownText
  ) {
    if works.isEmpty { return }
    text.append(
      """

      ### Programs and requests

      | program or server | runs | failed | total | median | longest |
      |---|---:|---:|---:|---:|---:|

      """)
    for work in works.prefix(mostLines) {
      text.appendRow([
        cell(work.name), "\(work.runs)", "\(work.failed)", Durations.text(of: work.total),
        Durations.text(of: work.median), Durations.text(of: work.longest),
      ])
    }
    if works.count > mostLines {
      text.append("\n\(works.count) in all; the table has those with the greatest totals.\n")
    }
  }
}
