/// Makes spans of the records of a log, and of the logs that this one keeps, in one pass.
struct SpanReader {
  private(set) var spans: ContiguousArray<Span> = []
  private(set) var order: ContiguousArray<Int32> = []
  private(set) var names: ContiguousArray<ByteString> = []
  private(set) var labels: ContiguousArray<ByteString> = []
  /// The ids of the runs whose logs were read.
  private(set) var runIDs: ContiguousArray<ByteString>
  private(set) var works: ContiguousArray<SpanWork> = []
  private var openWorks: ContiguousArray<SpanWork> = []
  private(set) var undos: ContiguousArray<SpanUndo> = []
  private(set) var retries: ContiguousArray<SpanRetry> = []
  private(set) var failures: ContiguousArray<SpanFailure> = []
  var edges: ContiguousArray<SpanEdge> = []
  private var numbers: [ByteString: Int32] = [:]
  private let began: Int64
  /// The latest time since the start of the run: the sum of both, rounded to microseconds, is a time since 1970. A
  /// virtual clock may be far beyond it.
  private let latest: Int64
  /// The logs that are being read, the innermost one last: no depth of nesting recurses.
  private var open: ContiguousArray<LogReader>

  init(_ log: EventLog) {
    began = log.began
    latest = max(0, Int64.max - 1000 - max(0, log.wallBase.later(by: log.began)))
    runIDs = [log.runID]
    open = [LogReader(log, 0, root: 0, resuming: nil)]
    spans.reserveCapacity(log.count / 2)
    order.reserveCapacity(log.count)
    let name = number(of: log.shown(log.title))
    let isFlow = log.scopes.first?.parts != nil
    spans.append(
      Span(
        id: 0, parent: -1, name: name, index: 0, label: -1, kind: isFlow ? .flow : .op, lane: 0,
        log: 0, isItem: false, position: 0, queued: 0, queuedLine: -1, start: 0, end: 0))
    order.append(0)
  }

  /// Reads all records.
  mutating func read() {
    while let reader = open.last {
      if let record = reader.next() {
        add(record, reader)
      } else if let (scope, log) = reader.unread.popFirst() {
        // The run of an op that hasn't ended, or that has outlived the run of the op.
        if let root = reader.known[reader.log.id(scope: scope, position: LogRecord.ownPosition)] {
          openChild(log, root: root, resuming: nil)
        }
      } else {
        open.removeLast()
        markFlows(reader)
        addEdges(of: reader.log, reader.known)
        addOpenWorks(reader)
        if let record = reader.resuming, let outer = open.last { finish(record, outer) }
      }
    }
  }

  private mutating func openChild(_ log: EventLog, root: Int32, resuming record: LogRecord?) {
    let number = UInt32(truncatingIfNeeded: runIDs.count)
    runIDs.append(log.runID)
    spans[Int(root)].ownLog = number
    open.append(LogReader(log, number, root: root, resuming: record))
  }

  /// Ends what hasn't ended, and the run itself.
  mutating func endAll(at end: Int64, outcome: Span.Outcome, _ failure: SpanFailure?) {
    let end = min(max(end, 0), latest)
    // Those of a run that has ended are lost from its log.
    for work in openWorks where outcome == .running {
      works.append(
        SpanWork(
          parent: work.parent, work: work.work, start: work.start, end: max(work.start, end),
          place: order.count))
    }
    for index in undos.indices where undos[index].outcome == .running {
      undos[index].end = max(undos[index].start, end)
      // The log has lost its end.
      if outcome != .running { undos[index].outcome = .cancelled }
    }
    // Children before their parents.
    for index in spans.indices.dropFirst().reversed() where spans[index].outcome == .running {
      let span = spans[index]
      let isOver = outcome != .running && span.kind == .group
      spans[index].end = max(span.start, isOver ? span.lastChildEnd : end)
      let parent = Int(span.parent)
      spans[parent].lastChildEnd = max(spans[parent].lastChildEnd, spans[index].end)
      if isOver { spans[index].outcome = span.isStopped ? .failed : .cancelled }
      order.append(~Int32(truncatingIfNeeded: index))
    }
    spans[0].end = end
    spans[0].outcome = outcome
    if let failure { spans[0].failure = add(failure) }
    order.append(~0)
  }

  // MARK: Records

  private mutating func add(_ record: LogRecord, _ reader: LogReader) {
    switch record.kind {
    case .start: start(record, reader, .op)
    case .finish:
      let log = reader.log
      if record.position == LogRecord.ownPosition, let child = reader.unread[record.scope] {
        // All that the child has logged comes before its end.
        reader.unread[record.scope] = nil
        if let root = reader.known[log.id(of: record)] {
          openChild(child, root: root, resuming: record)
          return
        }
      }
      finish(record, reader)
    case .retry: retry(record, reader)
    case .attempt:
      let id = reader.log.id(of: record)
      guard let index = id == 0 ? reader.root : reader.known[id] else { return }
      let last = spans[Int(index)].lastRetry
      if last >= 0 { retries[Int(last)].next = self.time(of: record) }
    case .programStart, .requestStart: startWork(record, reader)
    case .program, .request, .wait: addWork(record, reader)
    case .undoStart: startUndo(record, reader)
    case .undo: endUndo(record, reader)
    case .kept:
      if let index = reader.known[reader.log.id(of: record)] {
        spans[Int(index)].keptLine = number(of: reader.log.text(record.firstPayload))
      }
    case .queued:
      let line = number(of: reader.log.text(record.firstPayload))
      reader.waits[reader.log.id(of: record)] = (Int64(bitPattern: record.second), line)
    case .groupCreated: start(record, reader, .group)
    case .groupFinished: finish(record, reader)
    case .groupStopped:
      if let index = reader.known[reader.log.id(of: record)] { spans[Int(index)].isStopped = true }
    case .groupRefused, .groupEmpty:
      if record.kind == .groupRefused { start(record, reader, .group) }
      finish(record, reader)
    default: break
    }
  }

  /// The time of a record since the start of the run.
  private func time(of record: LogRecord) -> Int64 { min(record.time - began, latest) }

  private mutating func addWork(_ record: LogRecord, _ reader: LogReader) {
    let work = reader.log.work(of: record)
    guard let span = reader.known[reader.log.id(of: record)] else { return }
    let end = self.time(of: record)
    reader.endWork(work, startedAt: end - work.duration, id: reader.log.id(of: record))
    works.append(
      SpanWork(
        parent: span, work: work, start: max(spans[Int(span)].start, end - work.duration), end: end,
        place: order.count))
  }

  private func startWork(_ record: LogRecord, _ reader: LogReader) {
    let id = reader.log.id(of: record)
    guard let span = reader.known[id] else { return }
    reader.openWorks[id, default: []].append(
      (span: span, work: reader.log.work(of: record), start: self.time(of: record)))
  }

  /// Adds the programs and requests that haven't ended, when all records of a log were read.
  private mutating func addOpenWorks(_ reader: LogReader) {
    for (span, work, start) in reader.openWorks.values.joined().sorted(by: { $0.start < $1.start })
    {
      openWorks.append(SpanWork(parent: span, work: work, start: start, end: start, place: 0))
    }
  }

  private mutating func startUndo(_ record: LogRecord, _ reader: LogReader) {
    let log = reader.log
    let id = log.id(of: record)
    // The op of a machine's step has its span in another log.
    let span = id == 0 ? reader.root : reader.known[id]
    reader.openUndos[id] = undos.count
    let start = self.time(of: record)
    undos.append(
      SpanUndo(
        parent: span ?? reader.parent(of: record), name: log.shown(log.displayName(of: record)),
        isOfSpan: span != nil, start: start, end: start, attempt: record.attempt,
        place: order.count))
  }

  private mutating func endUndo(_ record: LogRecord, _ reader: LogReader) {
    guard let index = reader.openUndos.removeValue(forKey: reader.log.id(of: record)) else {
      return
    }
    let outcome = reader.log.loggedOutcome(of: record)
    undos[index].end = max(undos[index].start, self.time(of: record))
    undos[index].outcome = Span.Outcome(outcome.state)
    undos[index].error = outcome.message
    undos[index].errorKind = outcome.kind?.name
  }

  private mutating func start(_ record: LogRecord, _ reader: LogReader, _ kind: Span.Kind) {
    let log = reader.log
    let id = log.id(of: record)
    let time = self.time(of: record)
    if id == 0 {
      spans[Int(reader.root)].kind = kind
      return
    }
    // The worker or node that executed an item was lost: the item starts again.
    if let known = reader.known[id], spans[Int(known)].outcome == .running { return }
    let parent = reader.parent(of: record)
    closeGroup(of: parent, at: time)
    let scope = log.scopes[Int(record.scope)]
    let isItem = scope.kind == .group && record.position != LogRecord.ownPosition
    let (name, index) = log.subject(scope: scope, position: record.position)
    let number: Int32
    if isItem, let known = reader.itemNames[Int(record.scope)] {
      number = known
    } else {
      number = self.number(of: log.shown(name))
      if isItem { reader.itemNames[Int(record.scope)] = number }
    }
    var label: Int32 = -1
    if index > 0, let text = log.label(scope: record.scope, position: record.position) {
      label = Int32(truncatingIfNeeded: labels.count)
      labels.append(log.shown(text))
    }
    let made = Int32(truncatingIfNeeded: spans.count)
    let wait = reader.waits.isEmpty ? nil : reader.waits.removeValue(forKey: id)
    let ready = isItem ? min(scope.queued - began, time) : time - (wait?.time ?? 0)
    spans.append(
      Span(
        id: id, parent: parent, name: number, index: Int32(truncatingIfNeeded: index), label: label,
        kind: kind,
        lane: record.lane, log: reader.number, isItem: isItem,
        position: record.position,
        queued: ready, queuedLine: wait?.line ?? -1, start: time, end: time))
    spans[Int(parent)].childCount += 1
    if kind == .group { spans[Int(parent)].openGroup = made }
    order.append(made)
    reader.known[id] = made
  }

  private mutating func finish(_ record: LogRecord, _ reader: LogReader) {
    let log = reader.log
    let id = log.id(of: record)
    guard id != 0, let index = reader.known[id] else { return }
    let outcome: LoggedOutcome
    switch record.kind {
    case .groupFinished: outcome = LoggedOutcome(nil)
    case .groupEmpty:
      outcome = LoggedOutcome("withInsufficientInputData: \(log.text(record.firstPayload))")
    case .groupRefused: outcome = LoggedOutcome(log.text(record.firstPayload))
    default: outcome = log.loggedOutcome(of: record)
    }
    var failure: Int32 = -1
    if let message = outcome.message {
      failure = add(SpanFailure(message: message, kind: outcome.kind))
    }
    closeGroup(of: index, at: self.time(of: record))
    if record.lane != 0 { spans[Int(index)].lane = record.lane }
    end(index, at: self.time(of: record), Span.Outcome(outcome.state), failure)
  }

  private mutating func end(
    _ index: Int32, at time: Int64, _ outcome: Span.Outcome, _ failure: Int32
  ) {
    let span = spans[Int(index)]
    guard span.outcome == .running else { return }
    // A kept op took its time in another run.
    let isKept = span.keptLine >= 0 && outcome == .succeeded
    let time = isKept ? span.start : max(time, span.start)
    spans[Int(index)].end = time
    spans[Int(index)].outcome = isKept ? .kept : outcome
    spans[Int(index)].failure = failure
    let parent = Int(span.parent)
    spans[parent].lastChildEnd = max(spans[parent].lastChildEnd, time)
    if spans[parent].openGroup == index { spans[parent].openGroup = -1 }
    order.append(~index)
  }

  /// Ends the group that was the present step of a flow: the log has no line for the end of a group that
  /// was stopped. It ended with its last item.
  private mutating func closeGroup(of flow: Int32, at time: Int64) {
    let group = spans[Int(flow)].openGroup
    guard group >= 0 else { return }
    let span = spans[Int(group)]
    let last = span.childCount == 0 ? time : span.lastChildEnd
    end(group, at: last, span.isStopped ? .failed : .cancelled, -1)
  }

  private mutating func retry(_ record: LogRecord, _ reader: LogReader) {
    let log = reader.log
    let id = log.id(of: record)
    guard let index = id == 0 ? reader.root : reader.known[id] else { return }
    closeGroup(of: index, at: self.time(of: record))
    let time = self.time(of: record)
    let due = time.later(by: max(0, Int64(bitPattern: record.second)))
    retries.append(
      SpanRetry(
        previous: spans[Int(index)].lastRetry, time: time, due: due, next: due,
        attempt: record.attempt,
        message: Self.message(ofRetry: log.text(record.firstPayload))))
    spans[Int(index)].lastRetry = Int32(truncatingIfNeeded: retries.count - 1)
    spans[Int(index)].retryCount += 1
  }

  /// The error in `Retry 2/3 in 0.5s: boom`.
  private static func message(ofRetry text: ByteString) -> ByteString {
    guard let colon = text.bytes.firstIndex(of: UInt8(ascii: ":")) else { return text }
    return ByteString(text.bytes[colon...].dropFirst(2))
  }

  // MARK: Flows, names, failures

  /// A span is a flow if there is a scope for the steps of it.
  private mutating func markFlows(_ reader: LogReader) {
    let log = reader.log
    for (number, scope) in log.scopes.enumerated() where scope.kind == .flow {
      let id = log.id(scope: UInt32(truncatingIfNeeded: number), position: LogRecord.ownPosition)
      if let index = reader.known[id] { spans[Int(index)].kind = .flow }
    }
    if log.scopes.first?.parts != nil { spans[Int(reader.root)].kind = .flow }
  }

  private mutating func add(_ failure: SpanFailure) -> Int32 {
    failures.append(failure)
    return Int32(truncatingIfNeeded: failures.count - 1)
  }

  mutating func number(of name: ByteString) -> Int32 {
    if let known = numbers[name] { return known }
    let made = Int32(truncatingIfNeeded: names.count)
    names.append(name)
    numbers[name] = made
    return made
  }
}

/// The reading of one log.
private final class LogReader {
  let log: EventLog
  /// The index of the log among those that are read.
  let number: UInt32
  /// The span of the log's run.
  let root: Int32
  /// The record of the enclosing log that comes after this log.
  let resuming: LogRecord?
  /// The spans of executions.
  var known: [UInt64: Int32]
  /// The names of the items of groups, by the scope.
  var itemNames: ContiguousArray<Int32?>
  /// The logs that this one keeps and that haven't been read.
  var unread: [UInt32: EventLog]
  /// How long what starts next has waited for limits, and the number of the line, by the ids.
  var waits: [UInt64: (time: Int64, line: Int32)] = [:]
  /// The undos that execute, by the ids of the ops.
  var openUndos: [UInt64: Int] = [:]
  /// The programs and requests that haven't ended, by the ids of their ops.
  var openWorks: [UInt64: [(span: Int32, work: LoggedWork, start: Int64)]] = [:]
  private var place = EventLog.Place()
  private var parents: ContiguousArray<Int32>

  init(_ log: EventLog, _ number: UInt32, root: Int32, resuming: LogRecord?) {
    self.log = log
    self.number = number
    self.root = root
    self.resuming = resuming
    known = [0: root]
    unread = log.children.logs
    itemNames = ContiguousArray(repeating: nil, count: log.scopes.count)
    parents = ContiguousArray(repeating: -1, count: log.scopes.count)
  }

  func next() -> LogRecord? { log.record(at: &place) }

  /// Removes a work that has ended from the open ones: of equal ones the one that has started next to that time.
  func endWork(_ work: LoggedWork, startedAt start: Int64, id: UInt64) {
    guard work.kind != .wait, var open = openWorks[id] else { return }
    let equal = open.indices.filter {
      open[$0].work.kind == work.kind && open[$0].work.title == work.title
    }
    // A redirect changes the URL of a request.
    let candidates = equal.isEmpty ? open.indices.filter { open[$0].work.kind == work.kind } : equal
    guard
      let index = candidates.min(by: {
        (open[$0].start - start).magnitude < (open[$1].start - start).magnitude
      })
    else { return }
    open.remove(at: index)
    openWorks[id] = open.isEmpty ? nil : open
  }

  /// The span that encloses the execution of a record. All executions of a scope have the same.
  func parent(of record: LogRecord) -> Int32 {
    let scope = Int(record.scope)
    if parents[scope] >= 0 { return parents[scope] }
    let parent = log.parentID(of: record).flatMap { known[$0] } ?? root
    parents[scope] = parent
    return parent
  }
}
