/// Records that a log passes to a log of another loop, with their texts.
package struct LogSlice: Sendable {
  fileprivate let records: ContiguousArray<LogRecord>
  fileprivate let arena: ContiguousArray<UInt8>
  fileprivate let largeTexts: ContiguousArray<ByteString>

  /// Makes an empty slice.
  package init() {
    self.init(records: [], arena: [], largeTexts: [])
  }

  fileprivate init(
    records: ContiguousArray<LogRecord>, arena: ContiguousArray<UInt8>,
    largeTexts: ContiguousArray<ByteString>
  ) {
    self.records = records
    self.arena = arena
    self.largeTexts = largeTexts
  }

  /// The scope of the items in slices.
  static let itemScope: UInt32 = 1

  package var isEmpty: Bool { records.isEmpty }
}

extension EventLog {
  /// Removes and returns all records of the log, which continues empty: nothing else may read it.
  func takeSlice() -> LogSlice {
    let (records, arena, largeTexts) = drain()
    return LogSlice(records: records, arena: arena, largeTexts: largeTexts)
  }

  /// Appends the records of a slice that are about items, as records of a group in `scope` of this
  /// log.
  ///
  /// - Parameters:
  ///   - slice: The records that an `ItemExecutor` has logged.
  ///   - scope: The scope of the items in this log.
  ///   - lane: The number of the worker, from 1 on.
  ///   - note: Called with the 0-based index of each item that has started and didn't end in the
  ///     same slice, and the time.
  func append(
    _ slice: LogSlice, scope: UInt32, lane: UInt8, note: (_ index: Int, _ began: Int64) -> Void
  ) {
    // The finishes in it are so many records later.
    keepingEvents { appendAll(of: slice, scope: scope, lane: lane, note: note) }
  }

  private func appendAll(
    of slice: LogSlice, scope: UInt32, lane: UInt8, note: (_ index: Int, _ began: Int64) -> Void
  ) {
    // Coming finishes, the next one last, as a reader has them: each is due after a number of records.
    var finishes: ContiguousArray<(index: Int, record: LogRecord)> = []
    let isWatched = !sinks.isEmpty
    for (index, source) in slice.records.enumerated() {
      while let last = finishes.last, last.index == index {
        put(finishes.removeLast().record)
      }
      guard source.scope == LogSlice.itemScope else { continue }
      var record = source
      record.scope = scope
      record.lane = lane
      if record.isExecuted {
        if isWatched {
          // A sink gets both events in their places.
          finishes.append((index + 1 + Int(record.first), record.finish))
          record = record.start
        }
      } else {
        record = record.with(
          first: moved(source.firstPayload, slice), second: moved(source.secondPayload, slice))
        if record.kind == .start { note(Int(record.position) - 1, record.time) }
      }
      put(record)
    }
    while let last = finishes.popLast() { put(last.record) }
  }

  /// Converts a payload of a slice to one of this log.
  private func moved(_ payload: Payload, _ slice: LogSlice) -> Payload {
    switch payload.tag {
    case .none, .falsehood, .truth, .integer, .number: return payload
    case .shortText where secrets == nil: return payload
    case .shortText, .text, .largeText:
      let text = slice.arena.withUnsafeBufferPointer { arena in
        Self.text(payload, arena: arena, largeTexts: slice.largeTexts)
      }
      return self.payload(text)
    }
  }
}

/// A queue of turns, the earliest first: a binary heap.
struct EarliestFirst<Turn: Comparable> {
  private var heap: ContiguousArray<Turn> = []

  var first: Turn? { heap.first }

  mutating func push(_ turn: Turn) {
    var index = heap.count
    heap.append(turn)
    while index > 0, heap[index] < heap[(index - 1) / 2] {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  mutating func pop() -> Turn? {
    guard let first = heap.first, let last = heap.popLast() else { return nil }
    if heap.isEmpty { return first }
    heap[0] = last
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2]
      where child < heap.count && heap[child] < heap[least] { least = child }
      if least == index { return first }
      heap.swapAt(index, least)
      index = least
    }
  }
}

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
