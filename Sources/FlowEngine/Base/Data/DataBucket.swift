/// The key-value store that ops read and write, in the order in which keys were added.
///
/// A bucket with a `parent` reads through to it and writes only to itself. Confined to the thread
/// of its loop.
public final class DataBucket {
  /// A key with its value.
  package struct Entry {
    /// The key.
    package let key: DataKey
    /// The value.
    package internal(set) var value: FlowValue
  }

  /// The table that its keys are interned in.
  public let keys: KeyTable
  /// The bucket that is searched for keys that this one doesn't have; nil for none.
  package let parent: DataBucket?

  /// Up to this many entries are searched one by one, which is faster than an index.
  private static let scanLimit = 12

  // Unchecked exclusivity: see HotPath.swift.

  /// The first entry of a bucket that started with an item, stored in place: most have no other.
  /// `.null` when there is none.
  @exclusivity(unchecked) private var item: FlowValue = .null
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
  }

  /// Makes an empty bucket; keys of another table can't be used with it.
  package init(keys: KeyTable, parent: DataBucket? = nil) {
    self.keys = keys
    self.parent = parent
  }

  /// The number of keys of this bucket itself.
  public var count: Int { slots.count - (records?.removed ?? 0) + (item.isNull ? 0 : 1) }

  /// This bucket's own entries, in the order in which they were added.
  package var entries: [Entry] {
    let others = slots.filter { !$0.value.isNull }
    return item.isNull ? others : [Entry(key: itemKey, value: item)] + others
  }

  /// The value of `key` here, else in the nearest parent that has one.
  public func get(_ key: DataKey) -> FlowValue? {
    keys.identity.check()
    if let value = ownValue(of: key) { return value }
    var next = parent
    while let bucket = next {
      if let value = bucket.ownValue(of: key) { return value }
      next = bucket.parent
    }
    return nil
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
    var next = parent
    while let bucket = next {
      if let value = bucket.ownValue(of: key) { return value.kind }
      next = bucket.parent
    }
    return .absent
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

  /// Whether there is a value under a key, here or in a parent.
  public func has(_ key: DataKey) -> Bool {
    keys.identity.check()
    if hasOwn(key) { return true }
    var next = parent
    while let bucket = next {
      if bucket.hasOwn(key) { return true }
      next = bucket.parent
    }
    return false
  }

  /// Stores `value` and returns the replaced value; `.null` removes the key.
  ///
  /// For a secret it stores the plain value; the key is secret from then on, whatever is set later.
  @discardableResult
  public func set(_ key: DataKey, _ value: FlowValue) -> FlowValue? {
    keys.identity.check()
    if value.isNull { return remove(key) }
    if value.isSecret {
      makeRecords().secretKeys.insert(key)
      return store(key, value.plain)
    }
    return store(key, value)
  }

  /// Replaces a table by the form of it that a front end has made. Nothing happens if there is no such
  /// table under `key` any more.
  package func substitute(_ value: FlowValue, for table: any OpaqueValue, under key: DataKey) {
    var next: DataBucket? = self
    while let bucket = next {
      if let own = bucket.ownValue(of: key) {
        if case .opaque(let present) = own, present === table { _ = bucket.store(key, value) }
        return
      }
      next = bucket.parent
    }
  }

  /// Whether `key` was ever set to a secret, here or in a parent.
  public func isSecret(_ key: DataKey) -> Bool {
    var next: DataBucket? = self
    while let bucket = next {
      if let records = bucket.records, records.secretKeys.contains(key) { return true }
      next = bucket.parent
    }
    return false
  }

  @inline(__always)
  private func store(_ key: DataKey, _ value: FlowValue) -> FlowValue? {
    if key == itemKey {
      let old = item
      item = value
      return old
    }
    if let slot = slot(of: key) {
      let old = slots[slot].value
      slots[slot].value = value
      return old
    }
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
  public func remove(_ key: DataKey) -> FlowValue? {
    if key == itemKey {
      let old = item
      dropItem()
      return old
    }
    guard let slot = slot(of: key) else { return nil }
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

  /// Empties the bucket for its next use, keeping its memory.
  func reset() {
    dropItem()
    if let records {
      if records.index != nil { slots = [] }
      self.records = nil
    }
    while !slots.isEmpty { slots.removeLast() }
  }

  /// Stores the item in the empty bucket of a member.
  @inline(__always)
  func begin(_ key: DataKey, _ value: FlowValue) {
    if value.isNull { return }
    if value.isSecret { makeRecords().secretKeys.insert(key) }
    item = value.plain
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
    let texts = names.map(\.description)
    let nearest = NearestName.of(keys.name(of: key).description, in: texts)
    return nearest.flatMap { texts.firstIndex(of: $0) }.map { names[$0] }
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

// MARK: - Typed access for Swift

extension DataBucket {
  /// The interned key of a name.
  package func key(_ name: ByteString) -> DataKey { keys.intern(name) }

  /// The value under `name` as a Swift type; nil when it is absent or of another type.
  public func value<Wanted: FlowValueConvertible>(
    _ name: String, as type: Wanted.Type = Wanted.self
  ) -> Wanted? {
    get(keys.intern(name)).flatMap(Wanted.init(flowValue:))
  }

  /// The string under a name; nil when there is none, or a value of another type.
  public func string(_ name: String) -> String? { value(name) }
  /// The integer under a name; nil when there is none, or a value of another type.
  public func integer(_ name: String) -> Int64? { value(name) }
  /// The number under a name; nil when there is none, or a value of another type.
  public func number(_ name: String) -> Double? { value(name) }
  /// The boolean under a name; nil when there is none, or a value of another type.
  public func boolean(_ name: String) -> Bool? { value(name) }

  /// The value under a name; nil when there is none.
  public subscript(name: String) -> FlowValue? { self.get(keys.intern(name)) }
  /// The same for a name that may have any bytes.
  package subscript(name: ByteString) -> FlowValue? { self.get(keys.intern(name)) }
}
