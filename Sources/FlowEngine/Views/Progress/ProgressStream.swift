internal import Synchronization

/// How far a run is, as `Run.progressStream` reports it. Texts have no secrets.
///
/// ```swift
/// for await progress in run.progressStream() {
///   print(progress.op, "\(Int((progress.fraction ?? 0) * 100)) %")
/// }
/// ```
public struct RunProgress: Sendable, Equatable {
  /// The part of the run that is done, from 0 to 1; nil if that isn't known.
  ///
  /// A flow counts its steps, a group its items, and an op what it reports with `context.progress`; what is in progress
  /// counts in part. A retry, and an op that reports less than before, decrease it.
  public var fraction: Double?
  /// The path of the execution that matters most now, `publish/UploadOp #3`: the outermost group, or else the op
  /// that has been executed for the longest time.
  public var op: ByteString
  /// How much of that execution is done: items of a group, steps of a flow, units that an op reports; nil if that isn't
  /// known.
  public var done: Double?
  /// The number that `done` reaches at the end; nil if that isn't known.
  public var total: Double?
  /// The work of that execution: the command of its program, the method and URL of its request, or the last
  /// transition of a machine; nil if none of these applies.
  public var message: ByteString?
}

/// The progress of a run as an asynchronous sequence; made by `Run.progressStream`.
///
/// Each element but the first one is computed when the reader waits for it.
package struct ProgressStream: AsyncSequence, Sendable {
  private let stream: AsyncStream<RunProgress>
  private let demand: ProgressDemand

  /// Gets the elements one after another.
  package struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var iterator: AsyncStream<RunProgress>.AsyncIterator
    fileprivate let demand: ProgressDemand

    package mutating func next(isolation actor: isolated (any Actor)?) async -> RunProgress? {
      demand.wantElement()
      return await iterator.next(isolation: actor)
    }
  }

  package func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(iterator: stream.makeAsyncIterator(), demand: demand)
  }

  fileprivate init(_ stream: AsyncStream<RunProgress>, _ demand: ProgressDemand) {
    self.stream = stream
    self.demand = demand
  }
}

extension Run {
  /// The progress of the run, from now on. Called on the loop's thread.
  ///
  /// The first element is the progress when it is made. Each further one comes as soon as something has changed since
  /// the element before, is the present progress, and costs nothing without a reader. The sequence may be read on any
  /// thread, by one task at a time. It ends when the run has concluded, or its loop is shut down. The last element of
  /// a run that succeeds has the `fraction` 1. The loop never waits for a reader.
  ///
  /// ```swift
  /// for await progress in op.start(on: loop).progressStream() {
  ///   print(progress.fraction ?? 0, progress.op)
  /// }
  /// ```
  ///
  /// - Returns: The progress; the stream of a run that has concluded has at most one element.
  public func progressStream() -> some AsyncSequence<RunProgress, Never> & Sendable {
    loop.checkThread()
    // Only the first and the last element wait for a reader.
    let (stream, continuation) = AsyncStream.makeStream(
      of: RunProgress.self, bufferingPolicy: .bufferingNewest(1))
    let demand = ProgressDemand(on: loop.mailbox)
    let source = ProgressSource(self, continuation, demand)
    demand.source = source
    continuation.onTermination = { _ in demand.end() }
    if reportsItsEnd { source.follow(self) } else { source.runEnded(self) }
    return ProgressStream(stream, demand)
  }
}

/// The state that the reader of a stream shares with its source on the loop.
// Unchecked: `source` is set before the stream is returned, and then only used on the loop's thread.
private final class ProgressDemand: @unchecked Sendable {
  /// The first element waits to be read.
  private static let unread: UInt8 = 1
  /// The reader waits for an element.
  private static let wanted: UInt8 = 2
  /// Something has changed since the last element.
  private static let changed: UInt8 = 4
  /// The stream has ended, or nobody reads it any more.
  private static let ended: UInt8 = 8

  private let state = Atomic<UInt8>(0)
  private let mailbox: LoopMailbox
  weak var source: ProgressSource?

  init(on mailbox: LoopMailbox) { self.mailbox = mailbox }

  /// The reader is about to wait for an element; on any thread.
  func wantElement() {
    var old = state.load(ordering: .acquiring)
    while true {
      let isUnread = old & Self.unread != 0
      let new = isUnread ? old & ~Self.unread : old & ~Self.changed | Self.wanted
      let (exchanged, original) = state.compareExchange(
        expected: old, desired: new, ordering: .acquiringAndReleasing)
      if exchanged {
        if isUnread || old & Self.changed == 0 || old & Self.ended != 0 { return }
        _ = mailbox.postIfOpen { _ in self.source?.update() }
        return
      }
      old = original
    }
  }

  /// The stream has ended, or its reader is gone; on any thread.
  func end() { state.bitwiseOr(Self.ended, ordering: .acquiringAndReleasing) }

  // MARK: On the loop's thread

  /// Something has changed; returns whether the reader has to know now.
  func noteChange() -> Bool {
    var old = state.load(ordering: .relaxed)
    if old & (Self.wanted | Self.changed) == 0 {
      old = state.bitwiseOr(Self.changed, ordering: .acquiringAndReleasing).oldValue
    }
    return old & Self.wanted != 0
  }

  /// An element is about to be passed on.
  func noteElement() {
    state.bitwiseAnd(~(Self.wanted | Self.changed), ordering: .acquiringAndReleasing)
  }

  /// There is an element before the first reader.
  func noteFirstElement() { state.bitwiseOr(Self.unread, ordering: .acquiringAndReleasing) }

  var hasChanged: Bool { state.load(ordering: .relaxed) & Self.changed != 0 }
  var hasEnded: Bool { state.load(ordering: .relaxed) & Self.ended != 0 }
}

/// Passes the progress of one run to its stream.
private final class ProgressSource: StreamSource<RunProgress>, RecordSink, GroupSink {
  private let tree: ProgressTree
  private let demand: ProgressDemand
  private var last: RunProgress?
  private var hasChanged = false

  init(
    _ run: Run, _ continuation: AsyncStream<RunProgress>.Continuation, _ demand: ProgressDemand
  ) {
    tree = ProgressTree(of: run.loop)
    self.demand = demand
    super.init(continuation)
    guard !run.isConcluded else { return }
    tree.begin(run.log, in: nil)
    var place = EventLog.Place()
    while let record = run.log.record(at: &place) { tree.replay(record, in: run.log) }
    for group in run.executingGroups { tree.groupStarted(group) }
    tree.observer = self
    update(run.log)
    if last != nil { demand.noteFirstElement() }
  }

  func append(_ record: LogRecord, in log: EventLog) {
    hasChanged = false
    tree.append(record, in: log)
    guard hasChanged else { return }
    if demand.hasEnded {
      finish()
    } else if demand.noteChange() {
      update(log)
    }
  }

  func groupStarted(_ group: GroupExecution) { tree.groupStarted(group) }

  override func runEnded(_ run: Run) {
    if run.state == .succeeded {
      _ = continuation.yield(RunProgress(fraction: 1, op: run.log.shown(run.name)))
    } else if demand.hasChanged {
      update(run.log)
    }
    finish()
  }

  /// The reader wants to know what has changed.
  func update() {
    if !demand.hasEnded, let log = run?.log { update(log) }
  }

  private func update(_ log: EventLog) {
    guard let row = tree.mainRow()?.row else { return }
    let progress = RunProgress(
      fraction: tree.share(of: log), op: row.name, done: row.done, total: row.total,
      message: row.work ?? row.transition)
    guard progress != last else { return }
    demand.noteElement()
    last = progress
    _ = continuation.yield(progress)
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
