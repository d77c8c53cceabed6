package import FlowEngine

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
    let key = lineage.shortHexadecimal
    let outer = earlier.records[outer]
    let path = outer.path.bytes + [UInt8(ascii: "/")]
    let within = earlier.records.indices.filter {
      let record = earlier.records[$0]
      return record.state == .finished && record.began >= outer.began
        && record.ended <= outer.ended && record.path.bytes.starts(with: path)
    }
    guard let found = within.first(where: { earlier.records[$0].key == key }) else { return [] }
    let inner = earlier.records[found]
    return within.filter {
      $0 == found
        || inner.path.bytes.starts(with: earlier.records[$0].path.bytes + [UInt8(ascii: "/")])
    }
  }

  package func undone(within path: ByteString, then: @escaping (FlowError?) -> Void) {
    let prefix = path.bytes + [UInt8(ascii: "/")]
    // They are on the disk: an op has finished only then.
    let records = (try? store.records(of: id)) ?? []
    writeUndone(
      records.filter { $0.state == .finished && $0.path.bytes.starts(with: prefix) }, then: then)
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
