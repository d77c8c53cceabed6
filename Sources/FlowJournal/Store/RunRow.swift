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
    let words = row.withBytes(3) { bytes in
      var reader = RecordReader(bytes)
      return reader.texts()
    }
    self.words = words ?? []
    seed = row.integer(4)
    began = row.double(5)
    end = End(rawValue: row.integer(7)) ?? .finished
    ended = row.double(8)
    lease = RunLease(row, from: 9)
    let sum = try? Self.sum(number, name, script, self.words, seed, began, digests)
    isSound = words != nil && sum != nil && row.digest(6) == sum
  }

  /// What is known about the end of a run.
  enum End: Int64 {
    case none
    case finished
    /// All that the script had to do is done, and its process was about to end.
    case finishing
  }

  /// Whether nothing is left to do. A process that was about to end, and was killed instead, hasn't reported its success
  /// to anybody. When the machine has stopped since then, the process probably had ended: what it wrote last needn't be on
  /// the disk.
  var isFinished: Bool {
    switch end {
    case .none: false
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
      : isFinished ? .finished : .unfinished
    return KeptRunSummary(
      id: name, script: script, words: words, state: state, began: began,
      changed: changed, epoch: lease.epoch, started: 0, finished: 0, failed: 0)
  }
}
