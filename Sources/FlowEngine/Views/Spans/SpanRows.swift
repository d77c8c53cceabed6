/// The rows that show the spans of a run: those of a row are one after another, or one within another.
///
/// Each lane has rows of its own. A span is in the row of its parent while no other child of the parent is, else
/// in one that is free.
package struct SpanRows {
  package struct Row {
    /// The worker, counted from 1; 0 for the loop itself.
    package let lane: UInt8
    /// The number among the rows of the lane, from 1 on.
    package let number: Int
    /// The spans that have begun and haven't ended, the innermost one last.
    fileprivate var open: ContiguousArray<Int32> = []
    /// The latest end of a span.
    fileprivate var lastEnd: Int64 = 0
  }

  package private(set) var rows: [Row] = []
  /// The index of the row of each span.
  package private(set) var rowOfSpan: [Int]
  /// The index of the row of each program and request.
  package private(set) var rowOfWork: [Int] = []
  /// The index of the row of each undo.
  package private(set) var rowOfUndo: [Int] = []
  /// The end of the last program or request within an undo, by the undo.
  private var endWithinUndo: [Int: Int64] = [:]
  /// The rows of each lane in which nothing is.
  private var free: [UInt8: ContiguousArray<Int>] = [:]
  private var counts: [UInt8: Int] = [:]
  private let lanes: [UInt8: ByteString]
  /// How many free rows are tried: a row may be free in the order of the log, and not at that time.
  private static let tries = 8

  /// Finds the rows for a run.
  package init(_ run: RunSpans) {
    rowOfSpan = [Int](repeating: 0, count: run.spans.count)
    lanes = run.lanes
    for (place, entry) in run.order.enumerated() {
      addUndos(of: run, before: place)
      addWorks(of: run, before: place)
      if entry >= 0 {
        let index = Int(entry)
        let row = self.row(for: run.spans[index])
        rows[row].open.append(entry)
        rowOfSpan[index] = row
      } else {
        end(~entry, run.spans[Int(~entry)])
      }
    }
    addUndos(of: run, before: run.order.count)
    addWorks(of: run, before: run.order.count)
  }

  /// Finds the rows for the undos that have started before an entry of the order: the row of the op, if that is
  /// free or has the flow that is undone, or another one.
  private mutating func addUndos(of run: RunSpans, before place: Int) {
    while rowOfUndo.count < run.undos.count, run.undos[rowOfUndo.count].place <= place {
      let undo = run.undos[rowOfUndo.count]
      let own = rowOfSpan[Int(undo.parent)]
      var row: Int?
      if rows[own].lane == undo.lane, rows[own].lastEnd <= undo.start,
        rows[own].open.last.map({ isAround(undo, $0, run) }) ?? true
      {
        row = own
      } else {
        row = free[undo.lane]?.last { rows[$0].lastEnd <= undo.start }
      }
      let found = row ?? makeFreeRow(undo.lane)
      rows[found].lastEnd = max(rows[found].lastEnd, undo.end)
      rowOfUndo.append(found)
    }
  }

  private func isAround(_ undo: SpanUndo, _ index: Int32, _ run: RunSpans) -> Bool {
    var span = undo.parent
    while span > index { span = run.spans[Int(span)].parent }
    return span == index
  }

  /// Finds the rows for the programs and requests that have ended before an entry of the order.
  private mutating func addWorks(of run: RunSpans, before place: Int) {
    while rowOfWork.count < run.works.count, run.works[rowOfWork.count].place <= place {
      let work = run.works[rowOfWork.count]
      let lane = run.spans[Int(work.parent)].lane
      let row = rowWithinUndo(for: work, run) ?? self.row(for: work, lane)
      rows[row].lastEnd = max(rows[row].lastEnd, work.end)
      rowOfWork.append(row)
    }
  }

  /// The row of the span that it belongs to, or another one: it has ended, so that the row stays as free as
  /// it was.
  private mutating func row(for work: SpanWork, _ lane: UInt8) -> Int {
    let row = rowOfSpan[Int(work.parent)]
    if rows[row].open.last == work.parent, rows[row].lastEnd <= work.start { return row }
    if let known = free[lane]?.last(where: { rows[$0].lastEnd <= work.start }) { return known }
    return makeFreeRow(lane)
  }

  /// The row of the undo whose code has started it, if nothing else is there.
  private mutating func rowWithinUndo(for work: SpanWork, _ run: RunSpans) -> Int? {
    guard let undo = run.undo(of: work.parent, at: work.start), undo < rowOfUndo.count,
      endWithinUndo[undo] ?? 0 <= work.start, work.end <= run.undos[undo].end
    else { return nil }
    endWithinUndo[undo] = work.end
    return rowOfUndo[undo]
  }

  private mutating func makeFreeRow(_ lane: UInt8) -> Int {
    let made = makeRow(lane)
    free[lane, default: []].append(made)
    return made
  }

  private mutating func makeRow(_ lane: UInt8) -> Int {
    let number = (counts[lane] ?? 0) + 1
    counts[lane] = number
    rows.append(Row(lane: lane, number: number))
    return rows.count - 1
  }

  private mutating func row(for span: Span) -> Int {
    if span.parent >= 0 {
      let row = rowOfSpan[Int(span.parent)]
      if rows[row].open.last == span.parent, rows[row].lane == span.lane,
        rows[row].lastEnd <= span.start
      {
        return row
      }
    }
    if let known = free[span.lane] {
      for place in known.indices.reversed().prefix(Self.tries)
      where rows[known[place]].lastEnd <= span.start {
        free[span.lane]?.remove(at: place)
        return known[place]
      }
    }
    return makeRow(span.lane)
  }

  private mutating func end(_ index: Int32, _ span: Span) {
    let row = rowOfSpan[Int(index)]
    // A parent may end before a child that outlives it.
    if rows[row].open.last == index {
      rows[row].open.removeLast()
    } else {
      rows[row].open.removeAll { $0 == index }
    }
    rows[row].lastEnd = max(rows[row].lastEnd, span.end)
    if rows[row].open.isEmpty { free[span.lane, default: []].append(row) }
  }

  /// The name of a row: `main`, `main 2`, `worker 1`, `worker 1 (2)`, `gpu1/3`.
  package func name(of row: Int) -> ByteString {
    let (lane, number) = (rows[row].lane, rows[row].number)
    if lane == 0 { return number == 1 ? "main" : "main \(number)" }
    let name = lanes[lane] ?? "worker \(lane)"
    return number == 1 ? name : "\(name) (\(number))"
  }

  /// The place of a row among all rows: those of the loop itself come first.
  package func sortIndex(of row: Int) -> Int { Int(rows[row].lane) * 1_000_000 + rows[row].number }
}
