internal import FlowEngine

/// How long what a script executes took in its last run.
struct Experience {
  private struct Times {
    var began: Double
    var ended: Double
    /// The sum of all ops.
    var work = 0.0
  }

  private var times: [ByteString: Times] = [:]
  /// Whether no time is known.
  var isEmpty: Bool { times.isEmpty }

  /// Reads the times of the last run that has finished before one of the same script; empty without one.
  init(before run: Int64, in store: JournalStore) throws(FlowError) {
    guard let last = try store.finishedRun(before: run) else { return }
    try store.readTimes(of: last) { path, began, ended in add(path, began, ended) }
  }

  /// How many seconds it took at a path from the first start to the last end, or all ops together: they may have waited
  /// for others in between.
  func seconds(at path: ByteString) -> Double? {
    times[path].map { min($0.ended - $0.began, $0.work) }
  }

  /// Adds an op to all that encloses it: its flows, and its group, which has the path of an item without the number.
  private mutating func add(_ path: ByteString, _ began: Double, _ ended: Double) {
    var part = path.bytes[...]
    while true {
      note(ByteString(part), began, ended)
      let slash = part.lastIndex(of: UInt8(ascii: "/"))
      if let number = part.lastIndex(of: UInt8(ascii: "#")), number > slash ?? 0 {
        note(ByteString(part[..<number].dropLast()), began, ended)
      }
      guard let slash else { return }
      part = part[..<slash]
    }
  }

  private mutating func note(_ path: ByteString, _ began: Double, _ ended: Double) {
    var known = times[path] ?? Times(began: began, ended: ended)
    known.began = min(known.began, began)
    known.ended = max(known.ended, ended)
    known.work += ended - began
    times[path] = known
  }
}

extension JournalStore {
  /// The number of the last run that has finished before one of the same script.
  fileprivate func finishedRun(before run: Int64) throws(FlowError) -> Int64? {
    let select = try database.prepare(
      "SELECT number FROM runs WHERE script = (SELECT script FROM runs WHERE number = ?1) "
        + "AND number < ?1 AND is_finished IN (1, 2) ORDER BY number DESC LIMIT 1")
    select.bind(1, run)
    return try select.first { $0.integer(0) }
  }

  /// Reads the paths and times of the finished ops of a run; of very many the first ones.
  fileprivate func readTimes(
    of run: Int64, _ body: (ByteString, Double, Double) -> Void
  ) throws(FlowError) {
    let select = try database.prepare(
      "SELECT path, began, ended FROM records WHERE id >= ?1 AND id < ?2 AND state = 1 LIMIT 100000"
    )
    let numbers = RecordTable.numbers(of: run)
    select.bind(1, numbers.lowerBound)
    select.bind(2, numbers.upperBound)
    defer { select.reset() }
    while try select.step() { body(select.text(0), select.double(1), select.double(2)) }
  }
}
