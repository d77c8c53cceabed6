internal import FlowSystem
internal import FlowEngine

/// The row of a run.
struct RunRow {
  var number: Int64
  var name: ByteString
  var script: ByteString
  var words: [ByteString]
  var seed: Int64
  var began: Double
  var end: End
  var ended: Double
  var lease: RunLease
  /// Whether the columns that never change are what was written.
  var isSound: Bool

  static let columns: ByteString =
    "number, name, script, words, seed, began, sum, is_finished, ended, \(RunLease.columns)"

  init(_ row: StoreStatement, _ digests: DigestMaker) {
    number = row.integer(0)
    name = row.text(1)
    script = row.text(2)
    let words = row.withBytes(3) { [ByteString].decode($0) }
    self.words = words ?? []
    seed = row.integer(4)
    began = row.double(5)
    end = End(rawValue: row.integer(7)) ?? .finished
    ended = row.double(8)
    lease = RunLease(row, from: 9)
    let sum = try? Self.sum(number, name, script, self.words, seed, began, digests)
    isSound = words != nil && sum != nil && row.digest(6) == sum
  }

  /// The end of a run, as far as it is known.
  enum End: Int64 {
    case none
    case finished
    /// All that the script had to do is done, and its process was about to end.
    case finishing
    /// The script has failed, and a process may continue the run.
    case failed
  }

  /// Whether nothing is left to do. A process that was about to end, and was killed instead, hasn't reported its success
  /// to anybody. When the machine has stopped since then, the process probably had ended: what it wrote last needn't be on
  /// the disk.
  var isFinished: Bool {
    switch end {
    case .none, .failed: false
    case .finished: true
    case .finishing: lease.holder.isOfEarlierStart
    }
  }

  /// The digest of what never changes.
  static func sum(
    _ number: Int64, _ name: ByteString, _ script: ByteString, _ words: [ByteString], _ seed: Int64,
    _ began: Double, _ digests: DigestMaker
  ) throws(FlowError) -> Digest {
    var sum = RowSum()
    sum.add(number)
    sum.add(name)
    sum.add(script)
    for word in words { sum.add(word) }
    sum.add(seed)
    sum.add(began)
    return try digests.digest(of: sum.bytes)
  }

  /// When the last process that executed it ended, or last gave a sign of life.
  var changed: Double { max(ended, lease.beat) }

  var summary: KeptRunSummary {
    let state: KeptRunSummary.State =
      lease.isLive
      ? .live(pid: lease.holder.pid, host: lease.holder.host)
      : isFinished ? .finished : end == .failed ? .failed : .unfinished
    return KeptRunSummary(
      id: name, script: script, words: words, state: state, began: began,
      changed: changed, epoch: lease.epoch, started: 0, finished: 0, failed: 0)
  }
}

/// The completions of a loop that wait for writes, in the order of the writes.
///
/// Only the number of a writer crosses threads: the objects of a completion belong to the loop's thread.
final class RunCompletions: LoopExtension {
  private struct Waiting {
    let failed: (FlowError) -> Void
    var isClosed = false
    /// nil for a write that nothing waits for.
    var completions: [((FlowError?) -> Void)?] = []
  }

  // Unchecked exclusivity: see `OpKeeping`.
  @exclusivity(unchecked) private var waiting: [UInt64: Waiting] = [:]
  private var last: UInt64 = 0

  /// The completions of a loop; made when they are first needed.
  static func of(_ loop: FlowEventLoop) -> RunCompletions {
    let key = ObjectIdentifier(RunCompletions.self)
    if let present = loop.extensions[key] as? RunCompletions { return present }
    let made = RunCompletions()
    loop.extensions[key] = made
    return made
  }

  /// Adds a writer; `failed` is called before the completion of a write that has failed.
  ///
  /// - Returns: The number of the writer.
  func add(failed: @escaping (FlowError) -> Void) -> UInt64 {
    last += 1
    waiting[last] = Waiting(failed: failed)
    return last
  }

  /// Adds the completion of the writer's next write.
  func expect(of writer: UInt64, _ completion: ((FlowError?) -> Void)?) {
    waiting[writer]?.completions.append(completion)
  }

  /// Calls the oldest completions of a writer.
  func complete(_ count: Int, of writer: UInt64, with error: FlowError?) {
    guard let present = waiting[writer] else { return }
    let done = present.completions.prefix(count)
    waiting[writer]?.completions.removeFirst(done.count)
    removeClosed(writer)
    if let error { present.failed(error) }
    for completion in done { completion?(error) }
  }

  /// Forgets a writer that writes nothing more, when nothing waits for it any longer.
  func close(_ writer: UInt64) {
    waiting[writer]?.isClosed = true
    removeClosed(writer)
  }

  private func removeClosed(_ writer: UInt64) {
    if let last = waiting[writer], last.isClosed, last.completions.isEmpty {
      waiting[writer] = nil
    }
  }

  func loopIsShutDown() { waiting = [:] }
}
