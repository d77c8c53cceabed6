// The lineage of an execution: a number that is the same in each attempt at it and at everything that
// encloses it, until it is undone. It is computed from the execution's place when it is needed.

extension Run {
  /// The lineage of the execution at a place of the log: the place's own, unless something there was undone before.
  func lineage(scope: UInt32, position: UInt32) -> UInt64 {
    let counts = outermost.undoneCounts
    var hash = placeLineage(scope: scope, position: position)
    if counts.isEmpty { return hash }
    var (scope, position) = (scope, position)
    while true {
      if let count = counts[placeLineage(scope: scope, position: position)] {
        hash = (hash ^ count &* 0x9E37_79B9_7F4A_7C15).spread
      }
      let place = log.scopes[Int(scope)]
      if place.kind == .top { return hash }
      (scope, position) = (place.parent, place.position)
    }
  }

  /// An op that has succeeded at a place was undone: its next execution, and all within that, have other lineages.
  func noteUndone(at place: UInt64) { outermost.countUndone(place) }

  /// The run that no other one has started.
  package var outermost: Run {
    var run = self
    while let (outer, _) = run.outer { run = outer }
    return run
  }

  /// The lineage of a place of the log.
  ///
  /// It is made from positions, and from the number and name of each op that an attempt at another op has
  /// started. Numbers of attempts aren't part of it.
  func placeLineage(scope: UInt32, position: UInt32) -> UInt64 {
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
  package var lineage: UInt64 {
    if let keeping { return keeping.lineage }
    return (execution?.group as? UndoExecution)?.lineage ?? placedLineage
  }

  /// The lineage by the op's place, whatever was kept.
  package var placedLineage: UInt64 { run.lineage(scope: scope, position: position) }

  /// 26 characters that identify the execution: the same in each attempt and, for a kept run, in each process that
  /// continues it.
  package var key: ByteString { ExecutionKey.text(lineage, lineage.spread) }
}

/// Texts that identify an execution for others, such as a server.
package enum ExecutionKey {
  /// 26 digits of base 32.
  package static func text(_ high: UInt64, _ low: UInt64) -> ByteString {
    let digits = "0123456789abcdefghjkmnpqrstvwxyz".bytes
    var bits = (UInt128(high) << 64) | UInt128(low)
    var bytes: [UInt8] = []
    for _ in 0..<26 {
      bytes.append(digits[Int(bits & 31)])
      bits >>= 5
    }
    return ByteString(bytes)
  }
}

extension ItemWork {
  /// The lineage of the group.
  package var lineage: UInt64 { run.lineage(scope: scope, position: position) }
}
