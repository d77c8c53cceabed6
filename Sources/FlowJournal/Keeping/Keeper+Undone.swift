internal import FlowEngine

// Ops that had finished and were undone: they count as not finished.
extension Keeper {
  /// Ops that an earlier process had finished have been undone.
  func undone(_ indices: [Int], then: @escaping (FlowError?) -> Void) {
    let records = indices.map { earlier.records[$0] }
    for index in indices { earlier.drop(index) }
    writeUndone(records, then: then)
  }

  /// The record of an op that another one had executed, found by its lineage, and those of what was between the two.
  func inner(of outer: Int, around lineage: UInt64) -> [Int] {
    return earlier.between(outer, and: lineage.shortHexadecimal)
  }

  /// Writes that ops which have finished were undone; calls `then` when all of that is on the disk.
  func writeUndone(_ records: [OpRecord], then: @escaping (FlowError?) -> Void) {
    guard !isEnded, let last = records.indices.last else { return then(nil) }
    for (index, finished) in records.enumerated() {
      var record = finished
      record.state = .undone
      record.writes = []
      earlier.add(record)
      // Completions come in the order of the writes; after a failure nothing is written any more.
      kept?.write(record, then: index == last ? then : nil)
    }
  }
}
