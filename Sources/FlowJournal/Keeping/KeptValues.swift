package import FlowEngine

/// Values of data buckets as bytes, for a store. A host of scripts converts its own tables.
package protocol KeptValues: AnyObject {
  /// The form in which a value is kept, which `decode` reads; throws an error that names what can't be kept.
  func encode(_ value: Value) throws -> [UInt8]
  /// A kept value.
  func decode(_ bytes: [UInt8]) throws -> Value
}

extension JournalStore {
  /// The digest of a value, nil when a part of it can't be compared with that of another process: a function, a
  /// task.
  func digest(of value: Value?) throws(FlowError) -> Digest? {
    switch value {
    case nil, .null: return try digest(tagged: 0, 0)
    case .boolean(let flag): return try digest(tagged: 1, flag ? 1 : 0)
    case .integer(let integer): return try digest(tagged: 2, UInt64(bitPattern: integer))
    case .number(let number): return try digest(tagged: 3, number.bitPattern)
    case .bytes(let bytes): return try digest(of: [4] + bytes.bytes)
    case .opaque(let opaque):
      guard let copy = opaque.plainCopy() else { return nil }
      return try digest(of: [5] + PlainValueCodec.encode(copy, sortsEntries: true))
    }
  }

  private func digest(tagged tag: UInt8, _ bits: UInt64) throws(FlowError) -> Digest {
    try digest(of: [tag] + withUnsafeBytes(of: bits.littleEndian) { Array($0) })
  }

  func digest(of bytes: [UInt8]) throws(FlowError) -> Digest {
    try digest(ByteString(bytes))
  }
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
