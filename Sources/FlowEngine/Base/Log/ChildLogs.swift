/// The logs of the runs that the ops of a run have started, for its views.
///
/// Together they are bounded as the log itself is: beyond its limit the oldest ones that have ended are dropped, those of
/// runs that have succeeded first.
struct ChildLogs {
  /// By their scopes.
  private(set) var logs: [UInt32: EventLog] = [:]
  /// Those that have ended, the oldest first, and how many records take as much memory.
  private var succeeded: ContiguousArray<(scope: UInt32, weight: Int)> = []
  private var failed: ContiguousArray<(scope: UInt32, weight: Int)> = []
  private var weight = 0

  mutating func add(_ log: EventLog, of scope: UInt32) { logs[scope] = log }

  /// Counts a log whose run has ended. Returns how many events are dropped for it.
  mutating func end(_ scope: UInt32, hasFailed: Bool, limit: Int) -> Int {
    guard let log = logs[scope] else { return 0 }
    let own = log.byteCount / MemoryLayout<LogRecord>.stride + Self.emptyWeight
    let ended = (scope, own + log.children.weight)
    weight += ended.1
    if hasFailed { failed.append(ended) } else { succeeded.append(ended) }
    guard weight > limit else { return 0 }
    let left = limit - limit / 4
    return drop(\.succeeded, to: left) + drop(\.failed, to: left)
  }

  private mutating func drop(
    _ ended: WritableKeyPath<Self, ContiguousArray<(scope: UInt32, weight: Int)>>, to limit: Int
  ) -> Int {
    var events = 0
    var count = 0
    for entry in self[keyPath: ended] {
      if weight <= limit { break }
      weight -= entry.weight
      events += logs.removeValue(forKey: entry.scope)?.recordCountWithChildren ?? 0
      count += 1
    }
    self[keyPath: ended].removeFirst(count)
    return events
  }

  /// Releases all of them without recursion: runs can have started each other in a row of any length.
  mutating func releaseAll() {
    var open = Array(logs.values)
    self = ChildLogs()
    while var log = open.popLast() {
      guard isKnownUniquelyReferenced(&log) else { continue }
      open += log.children.logs.values
      log.children = ChildLogs()
    }
  }

  /// An empty log takes as much memory as so many records.
  private static let emptyWeight = 16
}
