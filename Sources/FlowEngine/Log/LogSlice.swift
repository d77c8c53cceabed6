/// Records that a log hands over to a log of another loop, with their texts.
package struct LogSlice: Sendable {
  fileprivate let records: ContiguousArray<LogRecord>
  fileprivate let arena: ContiguousArray<UInt8>
  fileprivate let largeTexts: ContiguousArray<ByteString>

  /// One of nothing.
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

  package var isEmpty: Bool { records.isEmpty }
}

extension EventLog {
  /// Takes all records out of the log, which goes on empty: nobody else may read it.
  func takeSlice() -> LogSlice {
    let (records, arena, largeTexts) = drain()
    return LogSlice(records: records, arena: arena, largeTexts: largeTexts)
  }

  /// Appends the records of a slice that are about items, as those of a group in `scope` here.
  ///
  /// - Parameters:
  ///   - slice: What an `ItemExecutor` has logged.
  ///   - scope: The scope of the items in this log.
  ///   - lane: Which worker it was, from 1 on.
  ///   - note: Called with the 0-based index of each item that has begun and didn't end in the same
  ///     stretch, and the time.
  func append(
    _ slice: LogSlice, scope: UInt32, lane: UInt8, note: (_ index: Int, _ began: Int64) -> Void
  ) {
    // Finishes to come, the next one last, as in a reader: each behind so many records.
    var finishes: ContiguousArray<(index: Int, record: LogRecord)> = []
    let isWatched = !sinks.isEmpty
    for (index, source) in slice.records.enumerated() {
      while let last = finishes.last, last.index == index {
        put(finishes.removeLast().record)
      }
      guard source.scope == ItemExecutor.scope else { continue }
      var record = source
      record.scope = scope
      record.lane = lane
      if record.isExecuted {
        if isWatched {
          // Who watches gets both events in their places.
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

  /// A payload of a slice as one of this log.
  private func moved(_ payload: Payload, _ slice: LogSlice) -> Payload {
    switch payload.tag {
    case .none, .falsehood, .truth, .integer, .number: return payload
    case .shortText where secrets == nil: return payload
    case .shortText, .text, .largeText:
      return self.payload(
        Self.text(payload, arena: slice.arena, largeTexts: slice.largeTexts))
    }
  }
}
