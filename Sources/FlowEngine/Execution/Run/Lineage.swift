// The lineage of an execution: a number that is the same in each attempt at it and at everything that
// encloses it. It is computed from the execution's place when it is needed.

extension Run {
  /// The lineage of the execution at a place of the log.
  ///
  /// It is made from positions, and from the number and name of each op that an attempt at another op has
  /// started. Numbers of attempts aren't part of it.
  func lineage(scope: UInt32, position: UInt32) -> UInt64 {
    var (scope, position, hash) = (scope, position, UInt64(0))
    while true {
      let place = log.scopes[Int(scope)]
      if place.kind == .top, position == LogRecord.ownPosition { break }
      // The attempts at a flow have scopes of their own at the same place.
      if place.kind != .flow || position != LogRecord.ownPosition {
        hash = (hash ^ UInt64(position)).spread
      }
      if place.kind == .top { break }
      if place.kind == .child || place.kind == .inner {
        hash = (hash ^ UInt64(place.number)).spread
        for byte in place.name.bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      }
      (scope, position) = (place.parent, place.position)
    }
    return (hash ^ lineage).spread
  }
}

extension OpContext {
  /// The lineage of the execution, the same in each attempt at the op and at the flows and ops around it.
  package var lineage: UInt64 { run.lineage(scope: scope, position: position) }
}

extension ItemWork {
  /// The lineage of the group.
  package var lineage: UInt64 { run.lineage(scope: scope, position: position) }
}
