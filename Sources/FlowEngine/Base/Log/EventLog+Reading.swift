// Reading the records in order, and the names of what they are about.
extension EventLog {
  /// The position of a reader.
  struct Place {
    var chunk = 0
    var offset = 0
    var index = 0
    /// How many records had been removed when it was last used.
    fileprivate var removed: Int?
    /// Coming finishes, the next one last: each is due when all records before `index` have been
    /// read. Ops that don't wait end in the reverse order of their starts.
    fileprivate var finishes: ContiguousArray<(index: Int, record: LogRecord)> = []
  }

  /// Returns the record at `place` and advances that; nil after the last one.
  func record(at place: inout Place) -> LogRecord? {
    if place.removed != removed { adjust(&place) }
    if let last = place.finishes.last, last.index == place.index {
      return place.finishes.removeLast().record
    }
    guard place.index < count else { return nil }
    if place.offset == chunks[place.chunk].count {
      place.chunk += 1
      place.offset = 0
    }
    let record = chunks[place.chunk][place.offset]
    place.offset += 1
    place.index += 1
    guard record.kind == .executed else { return record }
    place.finishes.append((place.index + Int(record.first), record.finish))
    return record.start
  }

  /// Moves a reader that has begun before records were removed; it may read some a second time.
  @inline(never)
  private func adjust(_ place: inout Place) {
    if let known = place.removed {
      let shift = removed - known
      var index = max(0, min(place.index - shift, count))
      let finishes = place.finishes
      place = Place()
      place.index = index
      for finish in finishes {
        place.finishes.append((max(index, finish.index - shift), finish.record))
      }
      while place.chunk < chunks.count - 1, index > chunks[place.chunk].count {
        index -= chunks[place.chunk].count
        place.chunk += 1
      }
      place.offset = index
    }
    place.removed = removed
  }

  /// Whether an execution has failed, or was stopped.
  var hasFailures: Bool {
    var left = count
    for chunk in chunks {
      let hasFailures = chunk.prefix(left).contains { record in
        switch record.kind {
        case .finish: record.firstPayload.tag != .none
        case .groupEmpty, .groupRefused: true
        default: false
        }
      }
      if hasFailures { return true }
      left -= min(left, chunk.count)
    }
    return false
  }

  /// The name of the op that a record is about, and its 1-based index in a group, else 0.
  func subject(of record: LogRecord) -> (name: ByteString, index: Int) {
    subject(scope: scopes[Int(record.scope)], position: record.position)
  }

  func subject(scope: LogScope, position: UInt32) -> (name: ByteString, index: Int) {
    if position == LogRecord.ownPosition { return (scope.name, 0) }
    if scope.kind == .group || scope.kind == .inner { return (scope.name, Int(position)) }
    return (scope.parts?.nameOfPart(at: position) ?? scope.name, 0)
  }

  /// The names of all executions that enclose something in this run, and its own, the outermost
  /// first. A group has none: its members have the name of the op, and an index.
  func names(scope: UInt32, position: UInt32) -> [ByteString] {
    var names: [ByteString] = []
    var number = scope
    var position = position
    while true {
      var scope = scopes[Int(number)]
      if scope.kind == .top, position == LogRecord.ownPosition { break }
      names.append(displayName(scope: number, position: position))
      while scope.kind == .group { scope = scopes[Int(scope.parent)] }
      if scope.kind == .top { break }
      position = scope.position
      number = scope.parent
    }
    names.append(title)
    return names.reversed()
  }

  /// The name that lines show for the op of a record: `UploadOp`, or in a group `UploadOp #3`, and
  /// after that the label if the item has one.
  func displayName(of record: LogRecord) -> ByteString {
    displayName(scope: record.scope, position: record.position)
  }

  func displayName(scope: UInt32, position: UInt32) -> ByteString {
    let (name, index) = subject(scope: scopes[Int(scope)], position: position)
    return displayName(name, index: index, scope: scope, position: position)
  }

  func displayName(
    _ name: ByteString, index: Int, scope: UInt32, position: UInt32
  ) -> ByteString {
    if index == 0 { return name }
    guard let label = label(scope: scope, position: position) else { return "\(name) #\(index)" }
    return "\(name) #\(index) \(label)"
  }
}
