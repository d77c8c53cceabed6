/// The key-value store that ops read and write, in the order in which keys were added.
///
/// A bucket with a `parent` reads through to it and writes only to itself. Confined to the thread
/// of its loop.
///
/// ```swift
/// let run = op.start(on: loop, data: ["name": "Ada", "age": 36])
/// print(run.data.value("name") ?? "nobody", run.data.value("age") ?? 0)
/// ```
public final class DataBucket {
  /// A key with its value.
  package struct Entry {
    /// The key.
    package let key: DataKey
    /// The value.
    package internal(set) var value: FlowValue
  }

  /// The table that its keys are interned in.
  package let keys: KeyTable
  /// The bucket that is searched for keys that this one doesn't have; nil for none.
  package let parent: DataBucket?

  /// Up to this many entries are searched one by one, which is faster than an index.
  private static let scanLimit = 12

  // Unchecked exclusivity: see HotPath.swift.

  /// The first entry of a bucket that started with an item, stored in place: most have no other.
  /// `.null` when there is none.
  @exclusivity(unchecked) private var item: FlowValue = .null
  /// Whether other buckets may read through to this one.
  @exclusivity(unchecked) private var isParent = false
  /// How many buckets it is below the nearest one that remembers what it inherits; 0 for such a bucket. See
  /// `holder(of:)`.
  private let steps: UInt8
  @exclusivity(unchecked) private var itemKey = DataKey(id: .max)
  /// In order of addition; a removed entry's value is `.null` until the next compaction.
  @exclusivity(unchecked) private var slots: ContiguousArray<Entry> = []
  @exclusivity(unchecked) private var records: KeyRecords?

  /// The records about keys that few buckets need.
  private final class KeyRecords {
    /// The slot of each key; nil up to `scanLimit` entries.
    @exclusivity(unchecked) var index: [DataKey: Int]?
    @exclusivity(unchecked) var removed = 0
    /// Keys that were ever set to a secret.
    @exclusivity(unchecked) var secretKeys: Set<DataKey> = []
    /// Says which values in the buckets above aren't seen from here.
    @exclusivity(unchecked) var mask: DataMask?
    /// The keys that were searched above the bucket, as long as they are in the same buckets.
    @exclusivity(unchecked) var inherited: [DataKey: Inherited] = [:]

    /// Whether it has nothing but a mask.
    var isMask: Bool {
      mask != nil && index == nil && removed == 0 && secretKeys.isEmpty && inherited.isEmpty
    }
  }

  /// Where a key was found above a bucket.
  private struct Inherited {
    /// The nearest bucket that has the key; nil for none. Safe: each bucket holds those above it.
    let holder: Unmanaged<DataBucket>?
    let changes: UInt32
  }

  /// Makes an empty bucket; keys of another table can't be used with it.
  package init(keys: KeyTable, parent: DataBucket? = nil) {
    self.keys = keys
    self.parent = parent
    steps = parent.map { $0.steps == Self.longestWalk ? 0 : $0.steps + 1 } ?? 1
    parent?.isParent = true
  }

  /// The number of keys of this bucket itself.
  package var count: Int { slots.count - (records?.removed ?? 0) + (item.isNull ? 0 : 1) }

  /// This bucket's own entries, in the order in which they were added.
  package var entries: [Entry] {
    let others = slots.filter { !$0.value.isNull }
    return item.isNull ? others : [Entry(key: itemKey, value: item)] + others
  }

  /// The value of `key` here, else in the nearest parent that has one.
  package func get(_ key: DataKey) -> FlowValue? {
    keys.identity.check()
    if let value = ownValue(of: key) { return value }
    return inheritedValue(of: key)
  }

  /// The kind of the value of `key`, here or in the nearest parent that has one.
  @inline(__always)
  func kind(of key: DataKey) -> ValueKinds {
    keys.identity.check()
    if key == itemKey { return item.kind }
    if let slot = slot(of: key) { return slots[slot].value.kind }
    return parent == nil ? .absent : inheritedKind(of: key)
  }

  @inline(never)
  private func inheritedKind(of key: DataKey) -> ValueKinds {
    inheritedValue(of: key)?.kind ?? .absent
  }

  @inline(__always)
  private func inheritedValue(of key: DataKey) -> FlowValue? {
    guard let parent, !hides(key) else { return nil }
    // Most values are in the next bucket.
    if let value = parent.ownValue(of: key) { return value }
    return parent.parent == nil ? nil : holder(of: key)?.ownValue(of: key)
  }

  /// How many buckets are searched before one that remembers what it inherits.
  private static let longestWalk: UInt8 = 15
  /// The most keys that it remembers.
  private static let inheritedLimit = 64

  /// The nearest bucket above this one that has `key`.
  ///
  /// Each group within a group adds a bucket to the chain. In a long chain every sixteenth bucket remembers
  /// where it has found a key, until a bucket that others read through to gets or loses that key.
  private func holder(of key: DataKey) -> DataBucket? {
    if hides(key) { return nil }
    var passed: ContiguousArray<DataBucket> = []
    var found: Unmanaged<DataBucket>?
    var next = parent
    while let bucket = next {
      if bucket.hasOwn(key) {
        found = .passUnretained(bucket)
        break
      }
      if bucket.steps == 0 {
        if let known = bucket.records?.inherited[key], known.changes == keys.changes(of: key) {
          found = known.holder
          break
        }
        passed.append(bucket)
      }
      next = bucket.hides(key) ? nil : bucket.parent
    }
    for bucket in passed {
      let records = bucket.makeRecords()
      if records.inherited.count == Self.inheritedLimit { records.inherited = [:] }
      records.inherited[key] = Inherited(holder: found, changes: keys.changes(of: key))
    }
    return found?.takeUnretainedValue()
  }

  /// The keys of which it remembers where they were found.
  var rememberedKeys: Set<DataKey> { Set(records?.inherited.keys.map { $0 } ?? []) }

  /// Notes that the bucket has got or lost a key.
  @inline(__always)
  private func noteChange(of key: DataKey) {
    if isParent { keys.noteChange(of: key) }
  }

  /// The value of `key` in this bucket itself.
  @inline(__always)
  package func ownValue(of key: DataKey) -> FlowValue? {
    if key == itemKey { return item }
    return slot(of: key).map { slots[$0].value }
  }

  /// Whether this bucket itself has `key`.
  @inline(__always)
  func hasOwn(_ key: DataKey) -> Bool { key == itemKey || slot(of: key) != nil }

  /// Whether a bucket, this one or one that it reads through to, decides about the value under a key.
  func inherits(_ key: DataKey, from other: DataBucket) -> Bool {
    var next: DataBucket? = self
    while let bucket = next, bucket !== other {
      if bucket.hasOwn(key) { return false }
      next = bucket.parent
    }
    return next != nil
  }

  /// Whether there is a value under a key, here or in a parent.
  package func has(_ key: DataKey) -> Bool {
    keys.identity.check()
    return hasOwn(key) || holder(of: key) != nil
  }

  /// Stores `value` and returns the replaced value; `.null` removes the key.
  ///
  /// For a secret it stores the plain value; the key is secret from then on, whatever is set later.
  @discardableResult
  package func set(_ key: DataKey, _ value: FlowValue) -> FlowValue? {
    keys.identity.check()
    if value.isNull { return remove(key) }
    if value.isSecret {
      noteSecret(key)
      return store(key, value.plain)
    }
    return store(key, value)
  }

  /// Sets a key to the value that another bucket has, or removes it; a secret stays one.
  func copy(_ key: DataKey, from other: DataBucket) {
    if other.isSecret(key) { noteSecret(key) }
    set(key, other.get(key) ?? .null)
  }

  /// Hides values of the buckets above. Called before anything was read.
  func hide(_ mask: DataMask) { makeRecords().mask = mask }

  @inline(__always)
  private func hides(_ key: DataKey) -> Bool {
    guard let records else { return false }
    return unretained(records) { $0.mask?.hides(key) == true }
  }

  /// The entries of all values that `get` finds, each with its bucket; those of this one come first.
  package var visibleEntries: [(entry: Entry, bucket: DataBucket)] {
    var found: [(Entry, DataBucket)] = []
    var passed: Set<DataKey> = []
    var next: DataBucket? = self
    while let bucket = next {
      for entry in bucket.entries where passed.insert(entry.key).inserted {
        found.append((entry, bucket))
      }
      if let mask = bucket.records?.mask { passed.formUnion(mask.all) }
      next = bucket.parent
    }
    return found
  }

  /// Replaces a table by the form of it that a front end has made. Nothing happens if there is no such
  /// table under `key` any more.
  package func substitute(_ value: FlowValue, for table: any OpaqueValue, under key: DataKey) {
    guard let bucket = hasOwn(key) ? self : holder(of: key),
      case .opaque(let present)? = bucket.ownValue(of: key), present === table
    else { return }
    _ = bucket.store(key, value)
  }

  /// Gives the table under a key the content of another one: it stays the same table for all that hold it. Without a
  /// table that can be changed the other one takes its place.
  func refill(_ key: DataKey, _ value: FlowValue) throws {
    let plain = value.plain
    guard case .opaque(let present)? = get(key), case .opaque(let content) = plain else {
      set(key, value)
      return
    }
    if let table = present as? any RefillableValue {
      try table.refill(from: content)
    } else {
      substitute(plain, for: present, under: key)
    }
  }

  /// Whether `key` was ever set to a secret, here or in a parent.
  package func isSecret(_ key: DataKey) -> Bool {
    guard keys.isSecret(key) else { return false }
    var passed: ContiguousArray<DataBucket> = []
    var next: DataBucket? = self
    while let bucket = next {
      if let records = bucket.records, records.secretKeys.contains(key) {
        // It stays secret there for as long as these live.
        for bucket in passed { bucket.makeRecords().secretKeys.insert(key) }
        return true
      }
      if bucket.steps == 0 { passed.append(bucket) }
      next = bucket.parent
    }
    return false
  }

  private func noteSecret(_ key: DataKey) {
    makeRecords().secretKeys.insert(key)
    keys.noteSecret(key)
  }

  @inline(__always)
  private func store(_ key: DataKey, _ value: FlowValue) -> FlowValue? {
    if key == itemKey {
      let old = item
      item = value
      return old
    }
    if let slot = slot(of: key) {
      // Exchanged, which copies neither.
      var old = value
      swap(&slots[slot].value, &old)
      return old
    }
    noteChange(of: key)
    slots.append(Entry(key: key, value: value))
    if let records, records.index != nil {
      records.index?[key] = slots.count - 1
    } else if slots.count > Self.scanLimit {
      makeIndex()
    }
    return nil
  }

  /// Removes `key` from this bucket and returns its value.
  @discardableResult
  package func remove(_ key: DataKey) -> FlowValue? {
    if key == itemKey {
      let old = item
      noteChange(of: key)
      dropItem()
      return old
    }
    guard let slot = slot(of: key) else { return hideShown(key) }
    noteChange(of: key)
    let old = slots[slot].value
    if let records, records.index != nil {
      slots[slot].value = .null
      records.index?[key] = nil
      records.removed += 1
      if records.removed * 2 > slots.count { compact() }
    } else {
      slots.remove(at: slot)
    }
    return old
  }

  /// Hides a value that the bucket's mask shows: it is the bucket's as if it were copied.
  private func hideShown(_ key: DataKey) -> FlowValue? {
    guard let records, let mask = records.mask, mask.shows(key) else { return nil }
    let old = get(key)
    noteChange(of: key)
    records.mask = mask.hiding(key)
    return old
  }

  /// Empties the bucket for its next use, keeping its memory.
  func reset() {
    // Nothing reads through to it any more.
    isParent = false
    dropItem()
    if let records, !records.isMask {
      if records.index != nil { slots = [] }
      self.records = nil
    }
    while !slots.isEmpty { slots.removeLast() }
  }

  /// Stores the item in the empty bucket of a member.
  @inline(__always)
  func begin(_ key: DataKey, _ value: FlowValue) {
    if value.isNull { return }
    if value.isSecret {
      noteSecret(key)
      item = value.plain
    } else {
      item = value
    }
    itemKey = key
  }

  /// The error of a needed key that is missing, with the name of a similar key.
  package func missingInput(_ key: DataKey) -> FlowError {
    suggesting(.missingInput(keys.name(of: key)), key)
  }

  /// The error of a declared output that is missing, with the name of a similar key.
  func missingOutput(_ key: DataKey) -> FlowError {
    suggesting(.missingOutput(keys.name(of: key)), key)
  }

  private func suggesting(_ error: FlowError, _ key: DataKey) -> FlowError {
    guard let nearest = nearestName(to: key) else { return error }
    return error.with { $0.suggestion = nearest }
  }

  /// The most keys that are searched for one with a similar name.
  private static let suggestionLimit = 200

  private func nearestName(to key: DataKey) -> ByteString? {
    var names: [ByteString] = []
    var next: DataBucket? = self
    while let bucket = next {
      for entry in bucket.entries.prefix(Self.suggestionLimit - names.count) {
        names.append(keys.name(of: entry.key))
      }
      next = bucket.parent
    }
    return NearestName.of(keys.name(of: key), in: names)
  }

  /// A value under `key` as messages may show it: as a secret when the key is secret.
  package func shown(_ value: FlowValue, of key: DataKey) -> FlowValue {
    isSecret(key) ? .secret(value) : value
  }

  @inline(__always)
  private func dropItem() {
    item = .null
    itemKey = DataKey(id: .max)
  }

  @inline(__always)
  private func slot(of key: DataKey) -> Int? {
    if let records, let index = records.index { return index[key] }
    for slot in slots.indices where slots[slot].key == key { return slot }
    return nil
  }

  private func compact() {
    slots.removeAll { $0.value.isNull }
    records?.removed = 0
    records?.index = nil
    if slots.count > Self.scanLimit { makeIndex() }
  }

  private func makeIndex() {
    var index: [DataKey: Int] = [:]
    for slot in slots.indices { index[slots[slot].key] = slot }
    makeRecords().index = index
  }

  private func makeRecords() -> KeyRecords {
    if let records { return records }
    let made = KeyRecords()
    records = made
    return made
  }
}

/// Keys whose values a bucket doesn't see in those above it. Buckets share it.
final class DataMask {
  private let hidden: [DataKey: Int]
  /// In the order of their numbers.
  private let shown: ArraySlice<DataKey>

  /// Hides the keys of a dictionary but for some of them, which are in the order of their numbers.
  init(_ hidden: [DataKey: Int], except shown: ArraySlice<DataKey> = []) {
    self.hidden = hidden
    self.shown = shown
  }

  func hides(_ key: DataKey) -> Bool { hidden[key] != nil && !shows(key) }

  /// A mask that hides one of the keys that this one shows.
  func hiding(_ key: DataKey) -> DataMask {
    DataMask(hidden, except: ArraySlice(shown.filter { $0 != key }))
  }

  /// Whether it is one of the keys that aren't hidden.
  func shows(_ key: DataKey) -> Bool {
    var (low, high) = (shown.startIndex, shown.endIndex)
    while low < high {
      let middle = (low + high) / 2
      if shown[middle].id < key.id { low = middle + 1 } else { high = middle }
    }
    return low < shown.endIndex && shown[low] == key
  }

  /// The hidden keys.
  var all: Set<DataKey> { Set(hidden.keys).subtracting(shown) }
}

// MARK: - Typed access for Swift

extension DataBucket {
  /// The interned key of a name.
  package func key(_ name: ByteString) -> DataKey { keys.intern(name) }

  /// The value under `name` as a Swift type; nil when it is absent or of another type.
  public func value<Wanted: FlowValueConvertible>(
    _ name: some FlowText, as type: Wanted.Type = Wanted.self
  ) -> Wanted? {
    get(keys.intern(name)).flatMap(Wanted.init(flowValue:))
  }

  /// The string under a name; nil when there is none, or a value of another type.
  package func string(_ name: some FlowText) -> String? { value(name) }
  /// The integer under a name; nil when there is none, or a value of another type.
  package func integer(_ name: some FlowText) -> Int64? { value(name) }
  /// The number under a name; nil when there is none, or a value of another type.
  package func number(_ name: some FlowText) -> Double? { value(name) }
  /// The boolean under a name; nil when there is none, or a value of another type.
  package func boolean(_ name: some FlowText) -> Bool? { value(name) }

  /// The value under a name; nil when there is none.
  public subscript(name: some FlowText) -> FlowValue? { self.get(keys.intern(name)) }
}

/// The data that a run begins with, of values of any types, in order.
///
/// ```swift
/// let run = op.start(on: loop, data: ["article": "apples", "amount": 3, "urgent": isUrgent])
/// ```
///
/// A list or table of mixed types is written as a `FlowValue`: `["limits": ["n": 3, "x": 0.5] as FlowValue]`.
public struct InitialData: ExpressibleByDictionaryLiteral {
  /// The values by the bytes of their keys; of two under one key the later one counts.
  package let entries: [(name: ByteString, value: FlowValue)]

  /// Makes data of values in order; of two under one key the later one counts.
  @_specialize(where Name == ByteString)
  public init<Name: FlowText>(_ entries: [(name: Name, value: FlowValue)]) {
    self.entries = entries.map { ($0.name.byteString, $0.value) }
  }

  public init(dictionaryLiteral elements: (any FlowText, any FlowValueConvertible)...) {
    entries = elements.map { ($0.byteString, $1.flowValue) }
  }

  /// Makes data of a dictionary, in the order of its keys.
  public init(_ dictionary: [some FlowText & Hashable: any FlowValueConvertible]) {
    entries = dictionary.map { ($0.byteString, $1.flowValue) }.sorted { $0.0 < $1.0 }
  }

  /// Makes data of a value with named properties, such as a structure that is `Encodable`: each
  /// property is a key.
  ///
  /// - Throws: An `EncodingError` when a property has no form in a bucket, or the value is encoded
  ///   as anything but named properties.
  public init(encoding content: some Encodable) throws {
    guard case .opaque(let table) = try FlowValueEncoder().encode(content),
      let map = table as? MapValue, map.numbered.isEmpty
    else {
      throw EncodingError.invalidValue(
        content,
        .init(codingPath: [], debugDescription: "data of a run has to have named properties"))
    }
    entries = map.fields
  }
}
