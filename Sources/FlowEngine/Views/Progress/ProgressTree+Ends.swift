// The ends of executions, and what is reported of them.
extension ProgressTree {
  /// Counts an execution that has ended with nothing in between.
  @inline(__always)
  func endHeld(_ start: LogRecord, _ end: LogRecord, _ log: ProgressLog, isKept: Bool) {
    let parent = parent(of: start, log)
    guard parent != ProgressNodes.none else { return }
    if start.position == LogRecord.ownPosition, log.log.scopes[Int(start.scope)].kind == .top {
      return
    }
    let step = EndedSteps.Step(
      scope: start.scope, position: start.position, duration: end.time &- start.time,
      hasFailed: false, isKept: isKept)
    count(step, in: parent, log)
  }

  @inline(__always)
  private func count(_ step: EndedSteps.Step, in parent: Int32, _ log: ProgressLog) {
    switch nodes[parent].kind {
    case .group:
      nodes[parent].ended += 1
      if step.hasFailed { nodes[parent].failed += 1 }
      if step.isKept { nodes[parent].kept += 1 }
    case .flow:
      if step.position & Blueprint.finallyBit == 0 { nodes[parent].ended += 1 }
      nodes[parent].endedSteps.add(step, in: log.log)
    case .op, .endedStep, .undo, .endedUndo: break
    }
  }

  // MARK: Undos

  /// Adds the undo of an op, within what is executed around that op.
  func startUndo(_ record: LogRecord, _ log: ProgressLog) {
    let id = log.log.id(of: record)
    guard id != 0, log.known[id] == nil else { return }
    let around = log.log.enclosingIDs(of: record).lazy.compactMap { log.known[$0] }.first
    guard let parent = around ?? (log.root == ProgressNodes.none ? nil : log.root) else { return }
    var node = ProgressNode(log: log, id: id, scope: record.scope, position: record.position)
    node.kind = .undo
    node.start = record.time
    node.attempt = record.attempt
    log.known[id] = nodes.add(node, to: parent)
  }

  /// Ends the undo of an op: `error` is the text of its line, nil for a success.
  func endUndo(_ record: LogRecord, _ log: ProgressLog, _ error: ByteString?) {
    guard let index = log.known[log.log.id(of: record)], nodes[index].kind == .undo else { return }
    let parent = nodes[index].parent
    if let message = LoggedOutcome(error).message {
      notify(
        .failure(
          ProgressNotice.Failure(
            path: path(ofUndo: record, log), message: message, attempts: 1, isLastOfItsKind: false,
            isOfUndo: true)))
    }
    let step = EndedSteps.Step(
      scope: record.scope, position: record.position, duration: record.time - nodes[index].start,
      hasFailed: error != nil, isUndo: true)
    remove(index, isStopped: false)
    if nodes[parent].kind == .flow { nodes[parent].endedSteps.add(step, in: log.log) }
  }

  /// Ends an execution: `error` is the text of its line, nil for a success.
  func finish(_ record: LogRecord, _ log: ProgressLog, _ error: ByteString?) {
    let id = log.log.id(of: record)
    guard id != 0, let index = log.known[id] else { return }
    let outcome = LoggedOutcome(error)
    let hasFailed = outcome.state == .failed
    if hasFailed, let message = outcome.message { report(message, of: index) }
    let parent = nodes[index].parent
    let step = EndedSteps.Step(
      scope: nodes[index].scope, position: nodes[index].position,
      duration: record.time - nodes[index].start, hasFailed: hasFailed)
    // A run that has outlived the op that started it is neither a step nor an item, and what was stopped
    // isn't done.
    let counts =
      parent != ProgressNodes.top && nodes[index].child == nil
      && !nodes[index].hasOutlivedParent && outcome.state != .cancelled
    let leavesLine = nodes[index].kind == .group && nodes[index].wasShown
    remove(index, isStopped: nodes[index].isStopped)
    guard counts else { return }
    // A group that leaves a line isn't repeated as a step.
    if leavesLine, nodes[parent].kind == .flow {
      nodes[parent].ended += 1
    } else {
      count(step, in: parent, log)
    }
  }

  /// Closes what has ended without a line of its own; runs that outlive an execution remain.
  func closeChildren(of index: Int32) {
    var open = [index]
    while let next = open.last {
      let child = nodes[next].first
      if child == ProgressNodes.none {
        open.removeLast()
        if next != index { forget(next) }
      } else if nodes[child].child != nil {
        let parent = nodes[index].parent
        nodes[child].hasOutlivedParent = true
        nodes.move(child, to: parent == ProgressNodes.none ? ProgressNodes.top : parent)
      } else {
        noteEnd(child, isStopped: true)
        open.append(child)
      }
    }
  }

  func remove(_ index: Int32, isStopped: Bool) {
    closeChildren(of: index)
    noteEnd(index, isStopped: isStopped)
    forget(index)
  }

  private func forget(_ index: Int32) {
    nodes[index].log?.forget(index, id: nodes[index].id)
    nodes[index].child?.forget(index, id: 0)
    if nodes[index].kind == .group { groups[index] = nil }
    if !estimates.isEmpty { estimates[index] = nil }
    if !failureCounts.isEmpty { failureCounts[index] = nil }
    nodes.remove(index)
  }

  /// The path of an op that was undone: what has enclosed it may have ended.
  private func path(ofUndo record: LogRecord, _ log: ProgressLog) -> ByteString {
    let inLog = log.log.path(of: record)
    guard log.root != ProgressNodes.none else { return log.log.shown(inLog) }
    let rest = ByteString(inLog.bytes.dropFirst(log.log.title.count))
    return log.log.shown("\(path(of: log.root))\(rest)")
  }

  // MARK: Notices

  /// Reports the end of a group that had a row.
  private func noteEnd(_ index: Int32, isStopped: Bool) {
    guard nodes[index].kind == .group, nodes[index].wasShown else { return }
    let node = nodes[index]
    guard let total = node.total,
      !nodes.ancestors(of: index).contains(where: { nodes[$0].isItem })
    else { return }
    notify(
      .groupEnd(
        ProgressNotice.GroupEnd(
          path: path(of: index), done: node.ended, total: total, failed: node.failed,
          kept: node.kept,
          isStopped: isStopped || node.isStopped, seconds: seconds(from: node.start))))
  }

  /// Reports a failure, unless it is passed on from within.
  func report(_ message: ByteString, of index: Int32) {
    let isPassedOn = nodes[index].failureWithin == message
    var parent = nodes[index].parent
    if parent > ProgressNodes.top {
      nodes[parent].failureWithin = message
      // A group passes the failure of an item on to its flow.
      if nodes[parent].kind == .group, nodes[parent].parent > ProgressNodes.top {
        nodes[nodes[parent].parent].failureWithin = message
      }
    }
    if isPassedOn { return }
    var isLast = false
    if parent > ProgressNodes.top, nodes[parent].kind == .group {
      let count = failureCounts[parent, default: [:]][message, default: 0] + 1
      // Where nearly each message is another one, nothing can be merged.
      if count > 1 || (failureCounts[parent]?.count ?? 0) < Self.messageLimit {
        failureCounts[parent, default: [:]][message] = count
      }
      if count > Self.failureLimit { return }
      isLast = count == Self.failureLimit
    }
    while parent > ProgressNodes.top {
      nodes[parent].failuresWithin += 1
      parent = nodes[parent].parent
    }
    notify(
      .failure(
        ProgressNotice.Failure(
          path: path(of: index), message: message, attempts: nodes[index].attempt,
          isLastOfItsKind: isLast)))
  }

  private func notify(_ notice: ProgressNotice) {
    onNotice?(notice)
    observer?.progressNoticed(notice)
  }

  func seconds(from time: Int64) -> Double { Double(max(0, loop.now() - time)) / 1e9 }
}
