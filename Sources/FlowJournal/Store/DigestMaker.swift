internal import CFlowSystem
internal import FlowEngine

/// Makes digests with the key of a store: HMAC-SHA-256 of OpenSSL's libcrypto, cut to 128 bits.
///
/// Each thread needs its own.
// Made of the library's plain digests: its functions for HMAC look the algorithm up for each message, which
// takes longer than the digest of an op's inputs.
final class DigestMaker {
  /// What the key contributes, before and after a message.
  private let inner: OpaquePointer
  private let outer: OpaquePointer
  private let current: OpaquePointer

  private static let blockSize = 64

  /// Makes digests with a key of at most 64 bytes.
  init(key: [UInt8]) throws(FlowError) {
    if let problem = flowsystem_load_crypto() {
      throw FlowError(.error, "can't keep a run: \(ByteString(String(cString: problem)))")
    }
    let padding = [UInt8](repeating: 0, count: max(0, Self.blockSize - key.count))
    let block = key.prefix(Self.blockSize) + padding
    guard let inner = Self.begin(block.map { $0 ^ 0x36 }) else { throw Self.failure }
    guard let outer = Self.begin(block.map { $0 ^ 0x5C }) else {
      _ = flowsystem_digest_end(inner, nil, nil)
      throw Self.failure
    }
    guard let current = Self.begin([]) else {
      _ = flowsystem_digest_end(inner, nil, nil)
      _ = flowsystem_digest_end(outer, nil, nil)
      throw Self.failure
    }
    self.inner = inner
    self.outer = outer
    self.current = current
  }

  deinit {
    for digest in [inner, outer, current] { _ = flowsystem_digest_end(digest, nil, nil) }
  }

  private static let failure = FlowError(.error, "can't keep a run: libcrypto can't make a digest")

  private static func begin(_ bytes: [UInt8]) -> OpaquePointer? {
    guard let digest = flowsystem_digest_begin(FLOWSYSTEM_SHA256) else { return nil }
    let isAdded =
      bytes.isEmpty
      || bytes.withUnsafeBytes { flowsystem_digest_add(digest, $0.baseAddress, $0.count) }
    if isAdded { return digest }
    _ = flowsystem_digest_end(digest, nil, nil)
    return nil
  }

  /// The digest of bytes.
  func digest(of bytes: UnsafeRawBufferPointer) throws(FlowError) -> Digest {
    let digest = withUnsafeTemporaryAllocation(
      byteCount: Int(FLOWSYSTEM_DIGEST_SIZE), alignment: 8
    ) { buffer -> Digest? in
      guard finish(inner, bytes, into: buffer),
        finish(outer, UnsafeRawBufferPointer(rebasing: buffer[..<32]), into: buffer)
      else { return nil }
      return Digest(UnsafeRawBufferPointer(rebasing: buffer[..<Digest.size]))
    }
    guard let digest else { throw Self.failure }
    return digest
  }

  /// The digest of bytes.
  func digest(of bytes: [UInt8]) throws(FlowError) -> Digest {
    try bytes.withUnsafeBufferPointer { bytes throws(FlowError) in
      try digest(of: UnsafeRawBufferPointer(bytes))
    }
  }

  /// All 32 bytes of the code that HMAC-SHA-256 makes of a message.
  func code(of bytes: [UInt8]) throws(FlowError) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: Int(FLOWSYSTEM_DIGEST_SIZE))
    let isDone = code.withUnsafeMutableBytes { code in
      bytes.withUnsafeBytes { finish(inner, $0, into: code) }
        && finish(outer, UnsafeRawBufferPointer(rebasing: code[..<32]), into: code)
    }
    if !isDone { throw Self.failure }
    return Array(code[..<32])
  }

  private func finish(
    _ start: OpaquePointer, _ bytes: UnsafeRawBufferPointer,
    into buffer: UnsafeMutableRawBufferPointer
  ) -> Bool {
    var count: UInt32 = 0
    let place = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
    return flowsystem_digest_copy(current, start)
      && (bytes.isEmpty || flowsystem_digest_add(current, bytes.baseAddress, bytes.count))
      && flowsystem_digest_finish(current, place, &count) && count == 32
  }
}
