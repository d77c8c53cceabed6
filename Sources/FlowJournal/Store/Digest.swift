internal import FlowEngine

/// 128 bits of a keyed hash: equal for equal bytes of one store, without a way back to the bytes.
package struct Digest: Hashable, Sendable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The number of bytes of the stored form.
  static let size = 16

  /// Reads the stored form; nil for another number of bytes.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.size else { return nil }
    high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
    low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
  }

  /// Lends the stored form.
  func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var words = (high.bigEndian, low.bigEndian)
    return try withUnsafeBytes(of: &words, body)
  }
}

extension Digest: CustomStringConvertible {
  /// 32 hexadecimal digits.
  package var description: String {
    [high, low].map { word in
      let digits = String(word, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}
