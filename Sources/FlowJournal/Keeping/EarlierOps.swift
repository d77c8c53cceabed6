internal import FlowEngine

/// What makes two executions of an op the same one: the op with its code, and what it was given.
struct OpContent: Hashable {
  let code: Digest
  let inputs: Digest

  init(code: Digest, inputs: [KeptInput]) {
    self.code = code
    // The names count: another key with the same value is another input.
    var all = Digest(high: UInt64(inputs.count), low: 1)
    for input in inputs {
      all = all.followed(by: Digest(high: input.name.fold, low: 0)).followed(by: input.digest)
    }
    self.inputs = all
  }
}

/// The records of the processes before this one, each to be taken over once.
struct EarlierOps {
  private(set) var records: [OpRecord]
  private var isTaken: [Bool]
  /// The first record with a content that isn't taken, and for each record the next one with the same content.
  private var first: [OpContent: Int] = [:]
  private var next: [Int]
  /// Records of each path, from the latest: made when an op isn't found by its content.
  private var places: [ByteString: [Int]]?

  init(_ records: [OpRecord]) {
    self.records = records
    isTaken = Array(repeating: false, count: records.count)
    next = Array(repeating: -1, count: records.count)
    first.reserveCapacity(records.count)
    // From the last, so that each list is in the order of the records.
    for index in records.indices.reversed() {
      let content = OpContent(code: records[index].code, inputs: records[index].inputs)
      if let later = first.updateValue(index, forKey: content) { next[index] = later }
    }
  }

  /// Takes the first record with this content that fits.
  mutating func take(_ content: OpContent, where fits: (OpRecord) -> Bool) -> Int? {
    guard var index = first[content] else { return nil }
    while index >= 0, isTaken[index] { index = next[index] }
    first[content] = index >= 0 ? index : nil
    var before = -1
    while index >= 0 {
      if isTaken[index] {
        index = next[index]
        if before >= 0 { next[before] = index }
        continue
      }
      if fits(records[index]) {
        isTaken[index] = true
        return index
      }
      before = index
      index = next[index]
    }
    return nil
  }

  mutating func take(_ index: Int) { isTaken[index] = true }

  /// The latest record of an op at a path that isn't taken.
  mutating func latest(at path: ByteString, where fits: (OpRecord) -> Bool) -> Int? {
    if places == nil {
      var made: [ByteString: [Int]] = [:]
      for index in records.indices.reversed() {
        made[records[index].path, default: []].append(index)
      }
      places = made
    }
    return places?[path]?.first { !isTaken[$0] && fits(records[$0]) }
  }

  /// Releases the values of a record that has been taken.
  mutating func dropWrites(_ index: Int) { records[index].writes = [] }
}

extension ByteString {
  /// 64 bits of the bytes.
  fileprivate var fold: UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash.spread
  }
}
