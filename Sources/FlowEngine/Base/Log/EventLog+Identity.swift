internal import Synchronization

// Every execution has an identity: it is computed from the place of its records when it is read, so
// that keeping it costs nothing.
extension EventLog {
  /// The id of the execution that a record is about, unique in this log; 0 for the run itself.
  /// Attempts at an op share it; an op within a flow that is retried has another one in each
  /// attempt at the flow.
  func id(of record: LogRecord) -> UInt64 {
    id(scope: record.scope, position: record.position)
  }

  /// The id of the flow, group or op that encloses the execution; nil for the run itself.
  func parentID(of record: LogRecord) -> UInt64? {
    let (scope, position) = canonical(record.scope, record.position)
    if isTop(scope, position) { return nil }
    let place = scopes[Int(scope)]
    // The enclosing execution of a run that an op has started is that op.
    if place.kind == .child || place.kind == .inner || place.kind == .group {
      return id(scope: place.parent, position: place.position)
    }
    return id(scope: scope, position: LogRecord.ownPosition)
  }

  /// The ids of all that encloses the execution of a record, the innermost first; the last one is 0.
  func enclosingIDs(of record: LogRecord) -> [UInt64] {
    var ids: [UInt64] = []
    var (scope, position) = canonical(record.scope, record.position)
    while !isTop(scope, position) {
      let place = scopes[Int(scope)]
      (scope, position) =
        place.kind == .child || place.kind == .inner || place.kind == .group
        ? canonical(place.parent, place.position) : canonical(scope, LogRecord.ownPosition)
      ids.append(Self.id(scope: scope, item: position))
    }
    return ids
  }

  /// When an execution could have started, in nanoseconds of the loop's clock: in a group, when the
  /// group started; nil elsewhere, where no execution waits for its turn.
  func queuedTime(of record: LogRecord) -> Int64? {
    let scope = scopes[Int(record.scope)]
    guard scope.kind == .group, record.position != LogRecord.ownPosition else { return nil }
    return scope.queued
  }

  /// The path of the execution that a record is about, in this run: `publish/ShardsOp #2/CountOp #1`.
  func path(of record: LogRecord) -> ByteString {
    let (scope, position) = canonical(record.scope, record.position)
    if isTop(scope, position) { return title }
    return "\(enclosingPath(of: scope))/\(displayName(scope: scope, position: position))"
  }

  /// The path of the executions that enclose a scope's parts, made once for each scope.
  private func enclosingPath(of scope: UInt32) -> ByteString {
    if let known = scopePaths[scope] { return known }
    // Scopes can be nested to any depth: the outermost ones are made first.
    var missing: [UInt32] = [scope]
    while let next = missing.last {
      let place = scopes[Int(next)]
      let around = place.parent
      if place.kind == .top {
        scopePaths[next] = title
      } else if let known = scopePaths[around] {
        // A group has no name of its own, and the position of a child or an inner op is its owner's.
        let isNamed = place.kind != .group && place.position != LogRecord.ownPosition
        let name = displayName(scope: around, position: place.position)
        let path: ByteString = isNamed ? "\(known)/\(name)" : known
        scopePaths[next] = path
        account?.add(path)
      } else {
        missing.append(around)
        continue
      }
      missing.removeLast()
    }
    return scopePaths[scope] ?? title
  }

  /// The id of the execution that a scope encloses.
  func id(ofScope scope: UInt32) -> UInt64 { id(scope: scope, position: LogRecord.ownPosition) }

  /// The id of the execution at a place.
  func id(scope: UInt32, position: UInt32) -> UInt64 {
    let (scope, position) = canonical(scope, position)
    return Self.id(scope: scope, item: position)
  }

  /// The id of an item, or of another execution at its only place.
  static func id(scope: UInt32, item position: UInt32) -> UInt64 {
    UInt64(scope) << 32 | UInt64(position &+ 1)
  }

  /// The one place for all places of the same execution: a nested flow is a step of the enclosing
  /// flow, in all its attempts.
  private func canonical(_ scope: UInt32, _ position: UInt32) -> (UInt32, UInt32) {
    var (scope, position) = (scope, position)
    while position == LogRecord.ownPosition {
      let place = scopes[Int(scope)]
      guard place.kind == .flow || place.kind == .group else { break }
      (scope, position) = (place.parent, place.position)
    }
    return (scope, position)
  }

  private func isTop(_ scope: UInt32, _ position: UInt32) -> Bool {
    position == LogRecord.ownPosition && scopes[Int(scope)].kind == .top
  }
}

/// Makes ids of runs that no other run of any process has.
enum RunIdentifier {
  private static let process = UInt64.random(in: 0 ... .max)
  private static let last = Atomic<UInt64>(0)

  /// The next id: 16 hexadecimal digits of the process, and a number.
  static func next() -> ByteString {
    let digits = String(process, radix: 16)
    let number = last.add(1, ordering: .relaxed).newValue
    return "\(String(repeating: "0" as Character, count: 16 - digits.count))\(digits)-\(number)"
  }
}
