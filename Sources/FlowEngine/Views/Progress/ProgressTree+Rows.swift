extension ProgressTree {
  /// An execution that may have a row, and how soon.
  private struct Candidate {
    enum Content {
      case node(Int32)
      case endedStep(EndedSteps.Step, EventLog)
    }

    let content: Content
    /// The place of the row that encloses it; -1 for none.
    let parent: Int
    /// The lower, the sooner.
    let level: Int
    let hasFailures: Bool
    let start: Int64
    /// Its place among those within the same one; steps that have ended come first.
    let place: Int
  }

  /// How many items of a group have rows for their own sake, and after how long.
  private static var itemLimit: Int { 3 }
  private static var itemDelay: Int64 { 1_000_000_000 }
  /// How many children are looked at for each row.
  private static var searchLimit: Int { 64 }

  /// The rows of a display.
  ///
  /// Rows that enclose others have precedence, then those with failures, then those that have been
  /// executed for the longest time. Items of a group have rows if they take longer than a second, at most
  /// three, or if other executions are within them.
  ///
  /// - Parameter limit: How many lines there are. If not everything has a row, one of them isn't used, for the
  ///   number of the others.
  /// - Returns: The rows, and how many executions have none.
  package func rows(atMost limit: Int) -> ProgressRows {
    loop.checkThread()
    addHeld()
    let time = loop.now()
    var open: [Candidate] = []
    var chosen: [Candidate] = []
    add(childrenOf: ProgressNodes.top, level: 0, row: -1, at: time, to: &open)
    while chosen.count < limit, let best = Self.best(of: open) {
      let candidate = open.remove(at: best)
      chosen.append(candidate)
      if case .node(let index) = candidate.content {
        add(
          childrenOf: endOfChain(index), level: candidate.level + 1, row: chosen.count - 1,
          at: time,
          to: &open)
      }
    }
    var hidden = hiddenCount(with: chosen)
    if hidden > 0, chosen.count == limit, chosen.count > 1 {
      chosen.removeLast()
      hidden = hiddenCount(with: chosen)
    }
    return ProgressRows(rows: ordered(chosen, at: time), hidden: hidden)
  }

  /// The row of the execution that matters most, with its path instead of its name, and the number of
  /// the other ones; nil if nothing is in progress.
  package func mainRow() -> (row: ProgressRow, others: Int)? {
    loop.checkThread()
    addHeld()
    let time = loop.now()
    var index = ProgressNodes.top
    var depth = 0
    while nodes[index].kind != .group || index == ProgressNodes.top {
      var open: [Candidate] = []
      add(childrenOf: index, level: 0, row: -1, at: time, to: &open)
      open.removeAll { if case .endedStep = $0.content { true } else { false } }
      guard let best = Self.best(of: open), case .node(let next) = open[best].content else { break }
      index = next
      depth += 1
    }
    guard index != ProgressNodes.top else { return nil }
    var row = row(of: index, at: time)
    row.name = path(of: index)
    return (row, max(0, nodes.count - nodes.leafItemCount - depth))
  }

  /// The index of the candidate that is next.
  private static func best(of open: [Candidate]) -> Int? {
    open.indices.min { a, b in
      let (one, other) = (open[a], open[b])
      if one.level != other.level { return one.level < other.level }
      if one.hasFailures != other.hasFailures { return one.hasFailures }
      return one.start == other.start ? a < b : one.start < other.start
    }
  }

  private func add(
    childrenOf index: Int32, level: Int, row: Int, at time: Int64, to open: inout [Candidate]
  ) {
    var child = nodes[index].first
    var (searched, items) = (0, 0)
    while child != ProgressNodes.none, searched < Self.searchLimit {
      let node = nodes[child]
      let isLeafItem = node.isItem && node.first == ProgressNodes.none
      if isLeafItem, items < Self.itemLimit, time - node.start >= Self.itemDelay {
        items += 1
        open.append(candidate(child, node, level + 1, row, searched))
      } else if !isLeafItem {
        open.append(candidate(child, node, node.isItem ? level + 1 : level, row, searched))
      }
      searched += 1
      child = node.next
    }
    guard let log = nodes[index].endedSteps.log else { return }
    for (number, step) in nodes[index].endedSteps.inOrder.enumerated() {
      // The last ones matter most.
      open.append(
        Candidate(
          content: .endedStep(step, log), parent: row, level: level + 3,
          hasFailures: step.hasFailed, start: -Int64(number), place: number - EndedSteps.limit))
    }
  }

  private func candidate(
    _ index: Int32, _ node: ProgressNode, _ level: Int, _ row: Int, _ place: Int
  ) -> Candidate {
    Candidate(
      content: .node(index), parent: row, level: level,
      hasFailures: node.failuresWithin > 0 || node.attempt > 1, start: node.start, place: place)
  }

  /// The last of the flows of which each one only executes the next one.
  private func endOfChain(_ index: Int32) -> Int32 {
    var end = index
    while nodes[end].kind == .flow, nodes[end].endedSteps.isEmpty, nodes[end].ended == 0 {
      let child = nodes[end].first
      guard child != ProgressNodes.none, child == nodes[end].last, nodes[child].kind == .flow else {
        break
      }
      end = child
    }
    return end
  }

  private func hiddenCount(with chosen: [Candidate]) -> Int {
    var shown = 0
    for candidate in chosen {
      guard case .node(let index) = candidate.content else { continue }
      if nodes[index].isItem, !nodes[index].hasHadChildren { continue }
      var end = endOfChain(index)
      shown += 1
      while end != index {
        shown += 1
        end = nodes[end].parent
      }
    }
    return max(0, nodes.count - nodes.leafItemCount - shown)
  }

  // MARK: Rows

  /// The rows in their order: the steps of a flow that have ended come first.
  private func ordered(_ chosen: [Candidate], at time: Int64) -> [ProgressRow] {
    var children: [Int: [Int]] = [:]
    for (row, candidate) in chosen.enumerated() {
      children[candidate.parent, default: []].append(row)
    }
    for parent in children.keys {
      children[parent]?.sort { chosen[$0].place < chosen[$1].place }
    }
    var rows: [ProgressRow] = []
    // No deeper than there are rows.
    var open = (children[-1] ?? []).reversed().map { (row: $0, depth: 0) }
    while let (row, depth) = open.popLast() {
      rows.append(self.row(of: chosen[row], depth: depth, at: time))
      open += (children[row] ?? []).reversed().map { ($0, depth + 1) }
    }
    return rows
  }

  private func row(of candidate: Candidate, depth: Int, at time: Int64) -> ProgressRow {
    switch candidate.content {
    case .endedStep(let step, let log):
      let name = log.displayName(scope: step.scope, position: step.position)
      var row = ProgressRow(
        kind: step.isUndo ? .endedUndo : .endedStep, depth: depth, name: log.shown(name),
        seconds: Double(max(0, step.duration)) / 1e9)
      row.failed = step.hasFailed ? 1 : 0
      row.kept = step.isKept ? 1 : 0
      return row
    case .node(let index):
      let end = endOfChain(index)
      var row = row(of: end, at: time)
      row.depth = depth
      if end != index {
        row.name = joined([end] + nodes.ancestors(of: end).prefix { $0 != index } + [index])
      }
      return row
    }
  }

  private func row(of index: Int32, at time: Int64) -> ProgressRow {
    let node = nodes[index]
    var row = ProgressRow(
      kind: node.kind, depth: 0, name: name(of: index),
      seconds: Double(max(0, time - node.start)) / 1e9)
    row.failed = node.failed
    row.kept = node.kept
    row.attempt = node.kind == .undo ? 1 : node.attempt
    row.transition = node.transition
    row.limit = node.limit.flatMap { node.log?.log.shown($0) }
    row.work = node.works.last?.title
    row.furtherWorks = max(0, node.works.count - 1)
    if let due = node.due, due > time { row.retryDelay = Double(due - time) / 1e9 }
    switch node.kind {
    case .group:
      nodes[index].wasShown = true
      row.done = Double(node.ended)
      row.total = node.total.map { Double($0) }
      row.running = groups[index]?.execution?.runningCount ?? 0
    case .flow:
      row.done = Double(node.ended)
      row.total = node.total.map { Double($0) }
    case .op, .undo:
      row.done = node.reported?.done
      row.total = node.reported?.total
    case .endedStep, .endedUndo: break
    }
    if node.kind != .flow, let share = row.executedShare {
      // The work of an earlier attempt is done again.
      let seconds = Double(max(0, time - (node.attemptStart ?? node.start))) / 1e9
      row.remaining = estimates[index, default: RemainingTime()].update(share, at: seconds)
    }
    return row
  }

  // MARK: Names

  /// The name of an execution, without secrets.
  private func name(of index: Int32) -> ByteString {
    let node = nodes[index]
    guard let log = node.log?.log else { return "" }
    if node.id == 0 { return log.shown(log.title) }
    if let child = node.child { return child.log.shown(child.log.title) }
    return log.shown(log.displayName(scope: node.scope, position: node.position))
  }

  /// The path of an execution: `publish/UploadOp #3`. Of a very long one only the ends.
  func path(of index: Int32) -> ByteString {
    joined([index] + nodes.ancestors(of: index).filter { nodes[$0].kind != .group })
  }

  /// The names of nodes, the innermost first, as a path.
  private func joined(_ path: [Int32]) -> ByteString {
    let ends = 4
    var names = path.prefix(ends).map { name(of: $0) }
    if path.count > ends * 2 { names.append("…") }
    names += path.dropFirst(ends).suffix(ends).map { name(of: $0) }
    return loop.secrets.redacted(
      ByteString(names.reversed().map(\.bytes).joined(separator: [UInt8(ascii: "/")])))
  }
}
