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
      return String(repeating: "0" as Character, count: 16 - digits.count) + digits
    }.joined()
  }
}

/// Makes digests with the key of a store: HMAC-SHA-256, cut to 128 bits.
///
/// Each thread needs its own.
final class DigestMaker {
  private let hash: KeyedHash

  /// Makes digests with a key of at most 64 bytes.
  init(key: [UInt8]) throws(FlowError) {
    do throws(SystemError) { hash = try KeyedHash(key: key) } catch { throw Self.failure(error) }
  }

  private static func failure(_ error: SystemError) -> FlowError {
    FlowError(.error, "can't keep a run: \(error.message)")
  }

  /// The digest of bytes.
  func digest(of bytes: UnsafeRawBufferPointer) throws(FlowError) -> Digest {
    let result = withUnsafeTemporaryAllocation(byteCount: KeyedHash.bufferSize, alignment: 8) {
      buffer -> Result<Digest?, SystemError> in
      do throws(SystemError) { try hash.write(codeOf: bytes, into: buffer) } catch {
        return .failure(error)
      }
      return .success(Digest(UnsafeRawBufferPointer(rebasing: buffer[..<Digest.size])))
    }
    switch result {
    case .success(let digest?): return digest
    case .success(nil): throw Self.failure(SystemError("the digest has another size"))
    case .failure(let error): throw Self.failure(error)
    }
  }

  /// The digest of bytes.
  func digest(of bytes: [UInt8]) throws(FlowError) -> Digest {
    try bytes.withUnsafeBufferPointer { bytes throws(FlowError) in
      try digest(of: UnsafeRawBufferPointer(bytes))
    }
  }
}
