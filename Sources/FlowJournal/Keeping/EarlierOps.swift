internal import FlowEngine

/// The content of an execution of an op, by which two are equal: the op with its code, and what it was given.
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

/// Where an op stands: which records can be of its execution, apart from what their contents say.
struct OpPlace {
  /// The number of the record of the op that executes it; 0 if none does.
  var outer: Int64 = 0
  /// How many ops that are kept as a whole are around it.
  var depth = 0
  /// The record of a finished op instead of which the op around it executes, because its code has changed.
  var replaced: Int?
  /// The lineage of the place.
  var lineage: UInt64
}

/// The records of the processes before this one, and of what this one has undone, each to be taken over once.
///
/// Which record is of an execution (the page *Keeping and undoing* has the rule for readers):
/// 1. The one of the same place and the same content.
/// 2. Another one of the same content within the same execution of the op around it. An op that no other one
/// executes may so be moved anywhere.
/// 3. One within an execution that hasn't finished, and that nothing continues. One within a finished execution belongs
///    to it: it is kept as a whole, or not at all. Only an op that executes because its code has changed may have what
///    its last execution had executed, which then isn't kept as a whole any more.
struct EarlierOps {
  private(set) var records: [OpRecord]
  private var isTaken: [Bool]
  private var contents: [OpContent]
  /// The lineages of the executions, from the keys of the records.
  private var lineages: [UInt64]
  /// The index after the last taken record's: mostly the next op has its content.
  private var following = 0
  /// The records by content and by the number of the outer record, and by lineage; made when they come in another order.
  private var groups: Chains<Group>?
  private var places: Chains<UInt64>?
  /// Records of each path, from the latest: made when an op isn't found by its content.
  private var paths: [ByteString: [Int]]?
  /// The records within other ones, by content, and the places of all records by their numbers: made when an op within
  /// another one isn't found there.
  private var inner: [OpContent: [Int]]?
  private var numbers: [Int64: Int]?
  private var children: [Int64: [Int]]?
  /// The oldest record of each lineage, and whether it was taken over at that place.
  private var owners: [UInt64: Int]?
  private var stayed: Set<Int> = []
  /// The paths of the ops that are executed only once, by their names; made when there is a question about one.
  private var namesOfOnce: [ByteString: Set<ByteString>]?
  /// The ids of records that were added and aren't taken.
  private var added: Set<Int64> = []

  private struct Group: Hashable {
    let content: OpContent
    let outer: Int64
  }

  init(_ records: [OpRecord]) {
    self.records = records
    isTaken = Array(repeating: false, count: records.count)
    contents = records.map { OpContent(code: $0.code, inputs: $0.inputs) }
    lineages = records.map { UInt64(hexadecimal: $0.key.bytes[...]) ?? 0 }
    if records.contains(where: { $0.outer == nil }) { setOuter() }
  }

  // MARK: Taking

  /// Takes the record of an execution, if it is one that is wanted.
  ///
  /// - Parameters:
  ///   - content: The content of the execution.
  ///   - place: Where it stands.
  ///   - isEqual: Whether what the op of a record had read besides its inputs is the same now.
  ///   - isWanted: Whether a record has what is needed. The one of the same place isn't replaced by others that have.
  /// - Returns: The record; nil when none is wanted.
  mutating func take(
    _ content: OpContent, at place: OpPlace, isEqual: (OpRecord) -> Bool,
    where isWanted: (OpRecord) -> Bool
  ) -> Int? {
    let found = find(content, at: place, isEqual, isWanted)
    if let found {
      if lineages[found] == place.lineage { stayed.insert(found) }
      take(found)
    }
    return found
  }

  private mutating func find(
    _ content: OpContent, at place: OpPlace, _ isEqual: (OpRecord) -> Bool,
    _ isWanted: (OpRecord) -> Bool
  ) -> Int? {
    // Ops that this process has undone count first.
    if added.isEmpty, following < records.count, !isTaken[following],
      lineages[following] == place.lineage, contents[following] == content,
      records[following].outer == place.outer, isEqual(records[following])
    {
      return isWanted(records[following]) ? following : nil
    }
    if groups == nil {
      groups = Chains(records.indices.map { Group(content: contents[$0], outer: outer(of: $0)) })
      places = Chains(lineages)
    }
    let own = places?.first(place.lineage) {
      !isTaken[$0]
    } where: {
      contents[$0] == content && records[$0].outer == place.outer && isEqual(records[$0])
    }
    if let own { return isWanted(records[own]) ? own : nil }
    func within(_ outer: Int64) -> Int? {
      groups?.first(Group(content: content, outer: outer)) {
        !isTaken[$0]
      } where: {
        isEqual(records[$0]) && isWanted(records[$0])
      }
    }
    if let found = within(place.outer) { return found }
    guard place.outer != 0 else { return nil }
    if let replaced = place.replaced, let found = within(records[replaced].number) {
      isTaken[replaced] = true
      return found
    }
    if inner == nil {
      let within = records.indices.filter { outer(of: $0) != 0 }
      inner = Dictionary(grouping: within) { contents[$0] }
    }
    return inner?[content]?.first {
      !isTaken[$0] && isEqual(records[$0]) && isWanted(records[$0]) && isLeft($0, at: place)
    }
  }

  mutating func take(_ index: Int) {
    isTaken[index] = true
    following = index + 1
    if !added.isEmpty { added.remove(records[index].id) }
  }

  /// Gives back a record that was taken.
  mutating func release(_ index: Int) { isTaken[index] = false }

  /// A record is one within another execution from now on.
  mutating func setOuter(of index: Int, _ outer: Int64?) { records[index].outer = outer }

  /// Forgets a record that doesn't hold any more.
  mutating func drop(_ index: Int) {
    isTaken[index] = true
    records[index].state = .undone
    records[index].writes = []
  }

  /// Adds the record of an op that has been undone, unless it is there.
  mutating func add(_ record: OpRecord) {
    guard added.insert(record.id).inserted else { return }
    let index = records.count
    records.append(record)
    isTaken.append(false)
    let content = OpContent(code: record.code, inputs: record.inputs)
    contents.append(content)
    lineages.append(UInt64(hexadecimal: record.key.bytes[...]) ?? 0)
    let outer = outer(of: index)
    groups?.prepend(index, Group(content: content, outer: outer))
    places?.prepend(index, lineages[index])
    paths?[record.path, default: []].insert(index, at: 0)
    numbers?[record.number] = index
    children = nil
    if outer != 0 { inner?[content, default: []].insert(index, at: 0) }
  }

  /// Whether ops of a name that are executed only once stand at other places, too, than a record: then the name doesn't say
  /// which of them an answer is about.
  mutating func hasSeveralPlaces(_ name: ByteString, _ record: OpRecord) -> Bool {
    if namesOfOnce == nil {
      namesOfOnce = Dictionary(grouping: records.filter(\.isOnce), by: \.shownName).mapValues {
        Set($0.map(\.path))
      }
    }
    return namesOfOnce?[name]?.contains { $0 != record.path } == true
  }

  // MARK: Other records

  /// The latest record at a path that isn't taken, and that can be one of an execution at a place.
  mutating func latest(
    at path: ByteString, _ place: OpPlace, where fits: (OpRecord) -> Bool
  ) -> Int? {
    if paths == nil {
      var made: [ByteString: [Int]] = [:]
      for index in records.indices.reversed() {
        made[records[index].path, default: []].append(index)
      }
      paths = made
    }
    return paths?[path]?.first {
      guard !isTaken[$0], fits(records[$0]) else { return false }
      if records[$0].outer == place.outer { return true }
      if let replaced = place.replaced, records[$0].outer == records[replaced].number {
        return true
      }
      return isLeft($0, at: place)
    }
  }

  /// Whether a record that is within another one has no execution that it belongs to, at the depth of a place.
  private mutating func isLeft(_ index: Int, at place: OpPlace) -> Bool {
    if numbers == nil { makeNumbers() }
    var depth = 0
    var next = outer(of: index)
    while next != 0 {
      guard let around = numbers?[next], !isTaken[around], records[around].state != .finished else {
        return false
      }
      depth += 1
      next = outer(of: around)
    }
    return depth > 0 && depth == place.depth
  }

  /// The finished records within one, at any depth.
  mutating func within(_ outer: Int) -> [Int] {
    if children == nil {
      children = Dictionary(
        grouping: records.indices.filter { self.outer(of: $0) != 0 }, by: { self.outer(of: $0) })
    }
    var found = [outer]
    var next = 0
    while next < found.count {
      found += children?[records[found[next]].number] ?? []
      next += 1
    }
    return found.dropFirst().filter { records[$0].state == .finished }
  }

  /// Those of them between one and one within it, that one included.
  mutating func between(_ outer: Int, and key: ByteString) -> [Int] {
    let all = within(outer)
    guard var next = all.first(where: { records[$0].key == key }) else { return [] }
    var chain = [next]
    while let around = all.first(where: { records[$0].number == self.outer(of: next) }) {
      chain.append(around)
      next = around
    }
    return chain
  }

  /// A lineage for a new execution at a place: the place's own, unless an earlier process has given that to an
  /// execution that was another one, such as for a list that has got a new first item.
  mutating func lineage(at place: OpPlace, _ record: OpRecord) -> UInt64 {
    if records.isEmpty { return place.lineage }
    if owners == nil {
      owners = Dictionary(zip(lineages, lineages.indices), uniquingKeysWith: { first, _ in first })
    }
    var lineage = place.lineage
    while let owner = owners?[lineage], !stayed.contains(owner),
      records[owner].op != record.op || Set(records[owner].inputs) != Set(record.inputs)
    {
      lineage = (lineage ^ 0x6F74_6865).spread
    }
    return lineage
  }

  private func outer(of index: Int) -> Int64 { records[index].outer ?? 0 }

  private mutating func makeNumbers() {
    numbers = Dictionary(
      records.indices.map { (records[$0].number, $0) }, uniquingKeysWith: { $1 })
  }

  /// Finds the outer records of those of a version that didn't write them: the op whose path is the beginning of
  /// theirs, and that was executing then.
  private mutating func setOuter() {
    var known: [ByteString: [Int]] = [:]
    for (index, record) in records.enumerated() {
      known[record.path, default: []].append(index)
    }
    for (index, record) in records.enumerated() where record.outer == nil {
      records[index].outer = around(record, known).map { records[$0].number } ?? 0
    }
  }

  private func around(_ record: OpRecord, _ known: [ByteString: [Int]]) -> Int? {
    var path = record.path.bytes[...]
    while let slash = path.lastIndex(of: UInt8(ascii: "/")) {
      path = path[..<slash]
      let found = known[ByteString(path)]?.last {
        records[$0].began <= record.began
          && (records[$0].ended == 0 || records[$0].ended >= record.ended)
      }
      if let found { return found }
    }
    return nil
  }
}

/// For each key the records that have it, in their order.
private struct Chains<Key: Hashable> {
  /// The first record of a key that isn't taken, and for each record the next one of the same key.
  private var first: [Key: Int] = [:]
  private var next: [Int]

  init(_ keys: [Key]) {
    next = Array(repeating: -1, count: keys.count)
    first.reserveCapacity(keys.count)
    // From the last, so that each list is in the order of the records.
    for index in keys.indices.reversed() {
      if let later = first.updateValue(index, forKey: keys[index]) { next[index] = later }
    }
  }

  /// The first record of this key that is free and fits.
  mutating func first(
    _ key: Key, isFree: (Int) -> Bool, where fits: (Int) -> Bool
  ) -> Int? {
    guard let start = first[key] else { return nil }
    var index = start
    while index >= 0, !isFree(index) { index = next[index] }
    // Each lookup of a key that all items share would pass by all that are taken.
    if index != start { first[key] = index >= 0 ? index : nil }
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

  /// Adds the next record, as the first of its key.
  mutating func prepend(_ index: Int, _ key: Key) {
    next.append(first.updateValue(index, forKey: key) ?? -1)
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
