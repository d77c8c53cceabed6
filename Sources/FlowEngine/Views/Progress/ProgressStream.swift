/// How far a run is, as `ProgressStream` reports it. Texts have no secrets.
public struct RunProgress: Sendable, Equatable {
  /// The part of the run that is done, from 0 to 1; nil if that isn't known.
  ///
  /// A flow counts its steps, a group its items, and an op what it reports with `context.progress`; what is in progress
  /// counts in part. A retry, and an op that reports less than before, decrease it.
  public var fraction: Double?
  /// The path of the execution that matters most now, `publish/UploadOp #3`: the outermost group, or else the op
  /// that has been executed for the longest time.
  public var op: String
  /// How much of that execution is done: items of a group, steps of a flow, units that an op reports; nil if that isn't
  /// known.
  public var done: Double?
  /// What `done` reaches at the end; nil if that isn't known.
  public var total: Double?
  /// What that execution does: the command of its program, the method and URL of its request, or the last transition of
  /// a machine; nil if none of these applies.
  public var message: String?
}

/// The progress of a run as an asynchronous sequence; made by `Run.progressStream`.
///
/// Its first element is the progress when it was made; one follows for each change, unless it is replaced before it is
/// read. It may be read on any thread, by one task at a time. It ends when the run has concluded, or its loop is shut
/// down; the last element of a run that succeeds has the `fraction` 1.
public struct ProgressStream: AsyncSequence, Sendable {
  public typealias Element = RunProgress
  public typealias Failure = Never

  private let stream: AsyncStream<RunProgress>

  /// Gets the elements one after another.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var iterator: AsyncStream<RunProgress>.AsyncIterator

    public mutating func next() async -> RunProgress? { await iterator.next() }

    public mutating func next(isolation actor: isolated (any Actor)?) async -> RunProgress? {
      await iterator.next(isolation: actor)
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(iterator: stream.makeAsyncIterator())
  }

  fileprivate init(_ stream: AsyncStream<RunProgress>) { self.stream = stream }
}

extension Run {
  /// The progress of the run, from now on. Called on the loop's thread.
  ///
  /// The loop never waits for a reader: when `limit` elements wait to be read, each further one replaces the oldest of
  /// them. With a limit of 1 a reader always gets the present progress.
  ///
  /// - Parameter limit: The most elements that wait to be read, at least 1.
  /// - Returns: The progress; the stream of a run that has concluded has at most one element.
  public func progressStream(bufferingNewest limit: Int = 1) -> ProgressStream {
    loop.checkThread()
    let (stream, continuation) = AsyncStream.makeStream(
      of: RunProgress.self, bufferingPolicy: .bufferingNewest(Swift.max(1, limit)))
    let source = ProgressSource(self, continuation)
    if reportsItsEnd { source.follow(self) } else { source.runEnded(self) }
    return ProgressStream(stream)
  }
}

/// Passes the progress of one run to its stream.
private final class ProgressSource: StreamSource<RunProgress>, RecordSink, GroupSink {
  private let tree: ProgressTree
  private var last: RunProgress?
  private var hasChanged = false

  init(_ run: Run, _ continuation: AsyncStream<RunProgress>.Continuation) {
    tree = ProgressTree(of: run.loop)
    super.init(continuation)
    guard !run.isConcluded else { return }
    tree.begin(run.log, in: nil)
    var place = EventLog.Place()
    while let record = run.log.record(at: &place) { tree.replay(record, in: run.log) }
    for group in run.executingGroups { tree.groupStarted(group) }
    tree.observer = self
    update(run.log)
  }

  func append(_ record: LogRecord, in log: EventLog) {
    hasChanged = false
    tree.append(record, in: log)
    if hasChanged { update(log) }
  }

  func groupStarted(_ group: GroupExecution) { tree.groupStarted(group) }

  override func runEnded(_ run: Run) {
    if run.state == .succeeded {
      _ = continuation.yield(RunProgress(fraction: 1, op: run.log.shown(run.nameBytes).description))
    }
    finish()
  }

  private func update(_ log: EventLog) {
    guard let row = tree.mainRow()?.row else { return }
    let progress = RunProgress(
      fraction: tree.share(of: log), op: row.name.description, done: row.done, total: row.total,
      message: (row.work ?? row.transition)?.description)
    guard progress != last else { return }
    last = progress
    // Its reader has stopped.
    if case .terminated = continuation.yield(progress) { finish() }
  }
}

extension ProgressSource: ProgressTree.Observer {
  func progressChanged(at time: Int64) -> Int64 {
    hasChanged = true
    return time
  }

  func progressNoticed(_ notice: ProgressNotice) {}

  func progressEnded() {}
}

extension ProgressTree {
  /// The part of a run that is done, from 0 to 1; nil if that isn't known.
  fileprivate func share(of log: EventLog) -> Double? {
    guard let root = tracked(log)?.lend({ $0.root }), root != ProgressNodes.none else { return nil }
    // Each change asks for it: of what is in progress at the same time only the first count in part.
    var left = 64
    return share(of: root, &left)
  }

  /// As deep as `left` allows.
  private func share(of index: Int32, _ left: inout Int) -> Double? {
    left -= 1
    let node = nodes[index]
    switch node.kind {
    case .op, .undo:
      guard let (done, total) = node.reported, let total, total > 0, total.isFinite, done.isFinite
      else { return nil }
      return min(max(done / total, 0), 1)
    case .flow, .group:
      guard let total = node.total else { return nil }
      var done = Double(node.ended)
      var child = node.first
      while child != ProgressNodes.none, left > 0 {
        if nodes[child].kind != .undo { done += share(of: child, &left) ?? 0 }
        child = nodes[child].next
      }
      return total > 0 ? min(done / Double(total), 1) : 1
    case .endedStep, .endedUndo: return nil
    }
  }
}
