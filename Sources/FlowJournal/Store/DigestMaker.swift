internal import FlowEngine

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
    FlowError(.error, "can't keep a run: \(error.messageBytes)")
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
