@_spi(Scripting) package import FlowEngine

/// Values of data buckets as bytes, for a store. A host of scripts converts its own tables.
package protocol KeptValues: AnyObject {
  /// The form in which a value is kept, which `decode` reads; throws an error that names what can't be kept.
  func encode(_ value: FlowValue) throws -> [UInt8]
  /// A kept value.
  func decode(_ bytes: [UInt8]) throws -> FlowValue
}

extension JournalStore {
  /// The digest of a value, nil when a part of it can't be compared with another process's: a function, a task.
  func digest(of value: FlowValue?) throws(FlowError) -> Digest? {
    switch value {
    case nil, .null: return try digest(tagged: 0, 0)
    case .boolean(let flag): return try digest(tagged: 1, flag ? 1 : 0)
    case .integer(let integer): return try digest(tagged: 2, UInt64(bitPattern: integer))
    case .number(let number): return try digest(tagged: 3, number.bitPattern)
    case .bytes(let bytes): return try digest(of: [4] + bytes.bytes)
    case .opaque(let opaque):
      let (copied, form) = (opaque as? any FormedValue)?.compared() ?? (opaque.plainCopy(), nil)
      guard let copy = copied else { return nil }
      if let form { return try digest(of: [6] + form.bytes) }
      return try digest(of: [5] + PlainValueCodec.encode(copy, sortsEntries: true))
    }
  }

  private func digest(tagged tag: UInt8, _ bits: UInt64) throws(FlowError) -> Digest {
    // Without an array: most inputs are numbers and short texts.
    let bits = bits.littleEndian
    return try withUnsafeTemporaryAllocation(byteCount: 9, alignment: 8) {
      buffer throws(FlowError) in
      buffer[0] = tag
      withUnsafeBytes(of: bits) {
        UnsafeMutableRawBufferPointer(rebasing: buffer[1...]).copyMemory(from: $0)
      }
      return try digest(UnsafeRawBufferPointer(buffer))
    }
  }

  func digest(of bytes: [UInt8]) throws(FlowError) -> Digest {
    try digest(ByteString(bytes))
  }
}

/// The code of an op, as far as it is compared with the code of earlier processes.
struct KeptCode {
  let origin: KeptWork.CodeOrigin?
  var digest = Digest.incomparable
  /// Where the code was written.
  var place: ByteString?
  /// Why it can't be compared.
  var problem: ByteString?
  /// Lists what it consists of.
  var details: () throws -> [CodeDetail] = { [] }
}

extension Digest {
  /// Equal to no digest of anything.
  static let incomparable = Digest(high: 0, low: 0)

  /// The digest of this one followed by another. Both are keyed, so that mixing their bits is enough.
  func followed(by other: Digest) -> Digest {
    Digest(
      high: (high ^ other.low.spread).spread &+ other.high,
      low: (low ^ other.high.spread).spread &+ other.low)
  }
}

/// Keys in the order of their addition, each once.
struct KeyList {
  private(set) var keys: [DataKey] = []
  /// The keys again, when there are many.
  private var index: Set<DataKey> = []

  /// Up to this many keys are searched one by one, which is faster than a set.
  private static let scanLimit = 12

  func contains(_ key: DataKey) -> Bool {
    index.isEmpty ? keys.contains(key) : index.contains(key)
  }

  /// Adds a key; returns whether it is a new one.
  mutating func insert(_ key: DataKey) -> Bool {
    if contains(key) { return false }
    keys.append(key)
    if !index.isEmpty {
      index.insert(key)
    } else if keys.count > Self.scanLimit {
      index = Set(keys)
    }
    return true
  }
}
