internal import FlowEngine

/// What makes two executions of an op the same one: the op with its code, and what it was given.
struct OpContent: Hashable {
  let code: Digest
  let inputs: Digest

  init(code: Digest, inputs: [KeptInput]) {
    self.code = code
    // The names count: another key with the same value is another input.
    var all = Digest(high: UInt64(inputs.count), low: 1)
    // In one order: an item in a worker lists its inputs in another one than an item on the loop.
    for input in inputs.count > 1 ? inputs.sorted(by: { $0.name < $1.name }) : inputs {
      all = all.followed(by: Digest(high: input.name.fold, low: 0)).followed(by: input.digest)
    }
    self.inputs = all
  }

  /// Digests are spread over all bits already.
  func hash(into hasher: inout Hasher) { hasher.combine(inputs.low ^ code.low) }
}

/// The records of the processes before this one, and of what this one has undone, each to be taken over once.
struct EarlierOps {
  private(set) var records: [OpRecord]
  private var isTaken: [Bool]
  private var contents: [OpContent]
  /// The index after that of the record that was taken last: mostly the next op has its content.
  private var following = 0
  /// The records by content, made when they come in another order.
  private var chains: Chains?
  /// Records of each path, from the latest: made when an op isn't found by its content.
  private var places: [ByteString: [Int]]?
  /// The ids of records that were added and aren't taken.
  private var added: Set<Int64> = []

  init(_ records: [OpRecord]) {
    self.records = records
    isTaken = Array(repeating: false, count: records.count)
    contents = records.map { OpContent(code: $0.code, inputs: $0.inputs) }
  }

  /// Takes a record with this content that fits: the one that follows the last one, else the first.
  mutating func take(_ content: OpContent, where fits: (OpRecord) -> Bool) -> Int? {
    // What this process has undone counts first.
    if added.isEmpty, following < records.count, !isTaken[following],
      contents[following] == content,
      fits(records[following])
    {
      let index = following
      take(index)
      return index
    }
    if chains == nil { chains = Chains(contents) }
    let found = chains?.first(content) {
      !isTaken[$0]
    } where: {
      fits(records[$0])
    }
    if let found { take(found) }
    return found
  }

  mutating func take(_ index: Int) {
    isTaken[index] = true
    following = index + 1
    if !added.isEmpty { added.remove(records[index].id) }
  }

  /// Adds the record of an op that has been undone, unless it is there.
  mutating func add(_ record: OpRecord) {
    guard added.insert(record.id).inserted else { return }
    let index = records.count
    records.append(record)
    isTaken.append(false)
    let content = OpContent(code: record.code, inputs: record.inputs)
    contents.append(content)
    chains?.prepend(index, content)
    places?[record.path, default: []].insert(index, at: 0)
  }

  /// Forgets a record that doesn't hold any more.
  mutating func drop(_ index: Int) {
    isTaken[index] = true
    records[index].state = .undone
    records[index].writes = []
  }

  /// Gives back the record that was taken last.
  mutating func release(_ index: Int) { isTaken[index] = false }

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

/// For each content the records that have it, in their order.
private struct Chains {
  /// The first record with a content that isn't taken, and for each record the next one with the same content.
  private var first: [OpContent: Int] = [:]
  private var next: [Int]

  init(_ contents: [OpContent]) {
    next = Array(repeating: -1, count: contents.count)
    first.reserveCapacity(contents.count)
    // From the last, so that each list is in the order of the records.
    for index in contents.indices.reversed() {
      if let later = first.updateValue(index, forKey: contents[index]) { next[index] = later }
    }
  }

  /// The first record with this content that is free and fits.
  mutating func first(
    _ content: OpContent, isFree: (Int) -> Bool, where fits: (Int) -> Bool
  ) -> Int? {
    guard let start = first[content] else { return nil }
    var index = start
    while index >= 0, !isFree(index) { index = next[index] }
    // Each lookup of a content that all items share would pass by all that are taken.
    if index != start { first[content] = index >= 0 ? index : nil }
    var before = -1
    while index >= 0 {
      if !isFree(index) {
        index = next[index]
        if before >= 0 { next[before] = index }
        continue
      }
      if fits(index) { return index }
      before = index
      index = next[index]
    }
    return nil
  }

  /// Adds the next record, as the first of its content.
  mutating func prepend(_ index: Int, _ content: OpContent) {
    next.append(first.updateValue(index, forKey: content) ?? -1)
  }
}

extension ByteString {
  /// 64 bits of the bytes.
  fileprivate var fold: UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash.spread
  }
}
