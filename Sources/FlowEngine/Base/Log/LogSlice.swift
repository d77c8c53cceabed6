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
    // Coming finishes, the next one last, as in a reader: each is due after a number of records.
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
