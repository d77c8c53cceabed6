/// An interned byte string: the name of a value in a data bucket, cheap to compare.
///
/// Only the `KeyTable` that made it knows its name.
package struct DataKey: Hashable, Sendable {
  package let id: UInt32

  package init(id: UInt32) {
    self.id = id
  }
}

/// The names of keys. One per event loop, confined to its thread.
package final class KeyTable {
  /// The thread of the table, and of all buckets with its keys.
  let identity = FlowEventLoop.Identity.current

  private var names: ContiguousArray<ByteString> = []
  /// Open addressing: 0 is free, else the id of a key plus one. At most half full.
  private var slots = ContiguousArray<UInt32>(repeating: 0, count: 64)

  /// How often each key has come into or gone out of buckets that others read through to; those at the end
  /// that never have are left out.
  private var changes: ContiguousArray<UInt32> = []
  /// The keys that were secret in any bucket.
  private var secretKeys: Set<DataKey> = []

  /// The texts that messages about the values of keys may not show.
  let secrets: SecretTexts

  /// The names of lanes, which all logs with these keys share.
  package let lanes = LaneNames()

  /// Counts the memory of keys that are interned from now on; nil unless something limits it.
  var account: MemoryAccount?
  /// The bytes that these keys take.
  package private(set) var counted = 0

  /// Makes a table without keys.
  ///
  /// - Parameter secrets: The texts that messages about the values of keys may not show.
  package init(secrets: SecretTexts = SecretTexts()) {
    self.secrets = secrets
  }

  /// Returns the key of `name`, always the same for the same bytes; allocates nothing when the name is known.
  @_specialize(where Name == ByteString)
  package func intern<Name: FlowText>(_ name: Name) -> DataKey {
    name.withUTF8Bytes { bytes in
      let slot = slot(of: bytes)
      if slots[slot] != 0 { return DataKey(id: slots[slot] - 1) }
      return insert(name.byteString, at: slot)
    }
  }

  /// Returns the key of the name in `bytes`; allocates nothing when the name is known.
  package func intern(_ bytes: UnsafeBufferPointer<UInt8>) -> DataKey {
    let slot = slot(of: bytes)
    if slots[slot] != 0 { return DataKey(id: slots[slot] - 1) }
    return insert(ByteString(bytes), at: slot)
  }

  /// The name that a key was interned with.
  package func name(of key: DataKey) -> ByteString {
    guard Int(key.id) < names.count else {
      misuse("a DataKey was used with the KeyTable of another event loop")
    }
    return names[Int(key.id)]
  }

  private func slot(of bytes: UnsafeBufferPointer<UInt8>) -> Int {
    let mask = slots.count - 1
    var slot = Self.hash(bytes) & mask
    while slots[slot] != 0 {
      let matches = names[Int(slots[slot] - 1)].withUnsafeBytes { $0.elementsEqual(bytes) }
      if matches { break }
      slot = (slot + 1) & mask
    }
    return slot
  }

  private func insert(_ name: ByteString, at slot: Int) -> DataKey {
    let key = DataKey(id: UInt32(truncatingIfNeeded: names.count))
    names.append(name)
    slots[slot] = key.id + 1
    if names.count * 2 > slots.count { grow() }
    if let account { count(name, in: account) }
    return key
  }

  private func count(_ name: ByteString, in account: MemoryAccount) {
    counted += Self.size(of: name)
    // A large name may share its bytes with other texts.
    let isLarge = name.count >= HeldBlocks.smallest
    account.change(by: isLarge ? Self.place : Self.size(of: name))
    if isLarge { account.add(name) }
  }

  /// The bytes that a key takes.
  package static func size(of name: ByteString) -> Int { name.count + place }
  /// The bytes that a key takes besides those of its name: the header of their array, and its places here.
  private static let place = 64

  /// A number that changes whenever a bucket that others read through to gets or loses a key.
  func changes(of key: DataKey) -> UInt32 {
    Int(key.id) < changes.count ? changes[Int(key.id)] : 0
  }

  /// Notes that a bucket that others read through to has got or lost a key.
  func noteChange(of key: DataKey) {
    while changes.count <= Int(key.id) { changes.append(0) }
    changes[Int(key.id)] &+= 1
  }

  /// Whether a key was secret in any bucket.
  func isSecret(_ key: DataKey) -> Bool { secretKeys.contains(key) }

  /// Notes that a key is secret in a bucket.
  func noteSecret(_ key: DataKey) { secretKeys.insert(key) }

  /// Whether there is a key with this name.
  package func contains(_ name: ByteString) -> Bool {
    name.withUnsafeBytes { slots[slot(of: $0)] != 0 }
  }

  private func grow() {
    let mask = slots.count * 2 - 1
    slots = ContiguousArray(repeating: 0, count: mask + 1)
    for (id, name) in names.enumerated() {
      var slot = name.withUnsafeBytes { Self.hash($0) } & mask
      while slots[slot] != 0 { slot = (slot + 1) & mask }
      slots[slot] = UInt32(truncatingIfNeeded: id) + 1
    }
  }

  /// Seeded per process: names come from scripts and their data, which could make them collide on
  /// purpose.
  private static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
    return hasher.finalize()
  }
}
