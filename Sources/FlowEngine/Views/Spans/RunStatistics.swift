/// The numbers of a run, and of the ops of each name. Times are in nanoseconds.
package struct RunStatistics {
  /// The executions of all ops of one name.
  package struct OfOp {
    package let name: ByteString
    package var runs = 0
    package var failed = 0
    /// How many weren't executed, because a kept run has their results.
    package var kept = 0
    /// How many were undone, and how many undos have failed or were cut off.
    package var undone = 0
    package var undosFailed = 0
    /// The sum of the durations of the undos, and the longest.
    package var undoTotal: Int64 = 0
    package var longestUndo: Int64 = 0
    /// How often one of them was retried.
    package var retried = 0
    /// The sum of the durations, waits for retries included.
    package var total: Int64 = 0
    package var median: Int64 = 0
    /// The duration that 95 percent of the executions don't exceed.
    package var percentile95: Int64 = 0
    package var longest: Int64 = 0
    /// The longest time from when an item could have started to its start.
    package var longestQueued: Int64 = 0
    /// The limits that were waited for in that time: `limit db`.
    package var queuedFor: ByteString?
  }

  /// From the start of the run to its end, or to now.
  package let duration: Int64
  /// How many ops were started, flows and groups and what is kept not counted.
  package private(set) var ops = 0
  package private(set) var failed = 0
  package private(set) var cancelled = 0
  package private(set) var running = 0
  /// How many ops weren't executed, because a kept run has their results.
  package private(set) var kept = 0
  /// How many ops were undone, and how many undos have failed or were cut off.
  package private(set) var undone = 0
  package private(set) var undosFailed = 0
  /// How many attempts were followed by another one.
  package private(set) var repeatedAttempts = 0
  /// The time that all ops took together, waits for retries not included. The time in which an op executes
  /// other ops counts once, for these.
  package private(set) var work: Int64 = 0
  /// How many ops executed at the same time, on average.
  package var parallelism: Double { duration > 0 ? Double(work) / Double(duration) : 0 }
  /// How many workers executed something.
  package private(set) var workers = 0
  /// Which part of the run's duration these workers executed ops, from 0 to 1.
  package private(set) var workerUse: Double = 0
  /// The ops by name, the one with the greatest total first.
  package private(set) var byOp: [OfOp] = []

  /// Computes the numbers of a run.
  package init(_ run: RunSpans) {
    duration = run.root.duration
    let tallies = count(run)
    work = Self.work(in: run)
    measureWorkers(run)
    byOp = tallies.sorted { a, b in
      a.total == b.total ? a.name < b.name : a.total > b.total
    }
  }

  /// Counts the ops; returns those that there are.
  private mutating func count(_ run: RunSpans) -> [OfOp] {
    ops = run.bound.droppedExecutions
    var tallies = run.names.map { OfOp(name: $0) }
    var durations = ContiguousArray(repeating: ContiguousArray<Int64>(), count: tallies.count)
    for span in run.spans where span.kind == .op {
      let name = Int(span.name)
      if span.isKept {
        kept += 1
        tallies[name].kept += 1
        continue
      }
      ops += 1
      tallies[name].runs += 1
      switch span.outcome {
      case .failed:
        failed += 1
        tallies[name].failed += 1
      case .cancelled: cancelled += 1
      case .running: running += 1
      case .succeeded, .kept: break
      }
      if span.retryCount > 0 { tallies[name].retried += Int(span.retryCount) }
      tallies[name].total = tallies[name].total.later(by: span.duration)
      if span.start - span.queued > tallies[name].longestQueued {
        tallies[name].longestQueued = span.start - span.queued
        tallies[name].queuedFor = span.queuedLine >= 0 ? run.limits(of: span) : nil
      }
      durations[name].append(span.duration)
    }
    countUndos(run, &tallies)
    // Flows are retried as a whole.
    repeatedAttempts = run.retries.count
    for name in durations.indices {
      durations[name].sort()
      tallies[name].median = Durations.percentile(50, ofSorted: durations[name])
      tallies[name].percentile95 = Durations.percentile(95, ofSorted: durations[name])
      tallies[name].longest = durations[name].last ?? 0
    }
    return tallies.filter { $0.runs > 0 || $0.kept > 0 || $0.undone > 0 || $0.undosFailed > 0 }
  }

  /// Flows are undone as well, and the ops of machines' steps have their spans elsewhere.
  private mutating func countUndos(_ run: RunSpans, _ tallies: inout [OfOp]) {
    var places: [ByteString: Int] = [:]
    for undo in run.undos where undo.outcome != .running {
      var place = Int(run.spans[Int(undo.parent)].name)
      if !undo.isOfSpan {
        let own = places[undo.name] ?? tallies.firstIndex { $0.name == undo.name }
        place = own ?? tallies.count
        if own == nil { tallies.append(OfOp(name: undo.name)) }
        places[undo.name] = place
      }
      if undo.outcome == .succeeded {
        undone += 1
        tallies[place].undone += 1
      } else {
        undosFailed += 1
        tallies[place].undosFailed += 1
      }
      tallies[place].undoTotal = tallies[place].undoTotal.later(by: undo.duration)
      tallies[place].longestUndo = max(tallies[place].longestUndo, undo.duration)
    }
  }

  private static func work(in run: RunSpans) -> Int64 {
    var work: Int64 = 0
    // Up to where the children of an op have covered its time; each comes after those that start before it.
    var covered: [Int32: Int64] = [:]
    for span in run.spans {
      if span.kind == .op {
        work = work.later(by: span.duration)
        var next = span.lastRetry
        while next >= 0 {
          let retry = run.retries[Int(next)]
          work = work.later(by: -max(0, min(retry.next, span.end) - retry.time))
          next = retry.previous
        }
      }
      guard span.parent >= 0 else { continue }
      let parent = run.spans[Int(span.parent)]
      guard parent.kind == .op, span.kind != .group else { continue }
      let from = max(span.start, covered[span.parent] ?? parent.start)
      let to = min(span.end, parent.end)
      guard to > from else { continue }
      work = work.later(by: from - to)
      covered[span.parent] = to
    }
    return max(0, work)
  }

  private mutating func measureWorkers(_ run: RunSpans) {
    var until = [Int64](repeating: 0, count: 256)
    var busy: Int64 = 0
    var used = Set<UInt8>()
    for span in run.spans where span.lane > 0 {
      let lane = Int(span.lane)
      used.insert(span.lane)
      let from = max(span.start, until[lane])
      if span.end > from {
        busy = busy.later(by: span.end - from)
        until[lane] = span.end
      }
    }
    workers = used.count
    if workers > 0, duration > 0 {
      workerUse = min(1, Double(busy) / Double(duration) / Double(workers))
    }
  }
}

/// The programs and requests of a run, merged by program, or by method and server.
struct WorkStatistics {
  /// Those of one program or server.
  struct Tally {
    /// `git`, `GET https://api.example`.
    let name: ByteString
    var runs = 0
    var failed = 0
    /// In nanoseconds.
    var total: Int64 = 0
    var median: Int64 = 0
    var longest: Int64 = 0
  }

  /// Those with the greatest totals first.
  let tallies: [Tally]

  init(_ run: RunSpans) {
    var tallies: [Tally] = []
    var durations: [ContiguousArray<Int64>] = []
    var places: [ByteString: Int] = [:]
    for work in run.works where work.work.kind != .wait {
      let name = Self.name(of: work.work)
      let place = places[name] ?? tallies.count
      if place == tallies.count {
        places[name] = place
        tallies.append(Tally(name: name))
        durations.append([])
      }
      tallies[place].runs += 1
      if work.work.outcome == .failed { tallies[place].failed += 1 }
      tallies[place].total = tallies[place].total.later(by: work.end - work.start)
      durations[place].append(work.end - work.start)
    }
    for place in tallies.indices {
      durations[place].sort()
      tallies[place].median = Durations.percentile(50, ofSorted: durations[place])
      tallies[place].longest = durations[place].last ?? 0
    }
    self.tallies = tallies.sorted { ($0.total, $1.name) > ($1.total, $0.name) }
  }

  private static func name(of work: LoggedWork) -> ByteString {
    guard work.kind == .request else { return work.name }
    // The third slash begins the path.
    var slashes = 0
    let server = work.title.bytes.prefix { byte in
      if byte == UInt8(ascii: "/") { slashes += 1 }
      return slashes < 3
    }
    return ByteString(server)
  }
}
