internal import FlowSystem

/// HMAC-SHA-256 by OpenSSL's libcrypto: a code that only those can make, or check, who have the key.
///
/// Each thread needs its own.
// Made of the library's plain digests: its functions for HMAC look the algorithm up for each message, which
// takes longer than the digest of a short message.
package final class KeyedHash {
  /// The key's states of the hash, before and after a message.
  private let inner: OpaquePointer
  private let outer: OpaquePointer
  private let current: OpaquePointer

  private static let blockSize = 64
  /// The number of bytes of a code.
  package static let size = 32
  /// The number of bytes that `write` needs.
  package static let bufferSize = Int(FLOWSYSTEM_DIGEST_SIZE)

  /// Makes codes with a key of at most 64 bytes.
  package init(key: [UInt8]) throws(SystemError) {
    if let problem = flowsystem_load_crypto() {
      throw SystemError(ByteString(String(cString: problem)))
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

  private static let failure = SystemError("libcrypto can't make a digest")

  private static func begin(_ bytes: [UInt8]) -> OpaquePointer? {
    guard let digest = flowsystem_digest_begin(FLOWSYSTEM_SHA256) else { return nil }
    let isAdded =
      bytes.isEmpty
      || bytes.withUnsafeBytes { flowsystem_digest_add(digest, $0.baseAddress, $0.count) }
    if isAdded { return digest }
    _ = flowsystem_digest_end(digest, nil, nil)
    return nil
  }

  /// Writes the code of bytes into a buffer of `bufferSize` bytes; it has `size`.
  package func write(
    codeOf bytes: UnsafeRawBufferPointer, into buffer: UnsafeMutableRawBufferPointer
  ) throws(SystemError) {
    let code = UnsafeRawBufferPointer(rebasing: buffer[..<Self.size])
    guard finish(inner, bytes, into: buffer), finish(outer, code, into: buffer) else {
      throw Self.failure
    }
  }

  /// The code of bytes.
  package func code(of bytes: [UInt8]) throws(SystemError) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: Self.bufferSize)
    // As buffers of a type: only their closures can throw this kind of error.
    try bytes.withUnsafeBufferPointer { bytes throws(SystemError) in
      try code.withUnsafeMutableBufferPointer { code throws(SystemError) in
        try write(
          codeOf: UnsafeRawBufferPointer(bytes), into: UnsafeMutableRawBufferPointer(code))
      }
    }
    return Array(code[..<Self.size])
  }

  /// Whether bytes have this code. It takes the same time for each wrong code.
  package func isCode(_ code: [UInt8], of bytes: [UInt8]) -> Bool {
    guard let right = try? self.code(of: bytes), right.count == code.count else { return false }
    return zip(right, code).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private func finish(
    _ start: OpaquePointer, _ bytes: UnsafeRawBufferPointer,
    into buffer: UnsafeMutableRawBufferPointer
  ) -> Bool {
    var count: UInt32 = 0
    let place = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
    return flowsystem_digest_copy(current, start)
      && (bytes.isEmpty || flowsystem_digest_add(current, bytes.baseAddress, bytes.count))
      && flowsystem_digest_finish(current, place, &count) && count == UInt32(Self.size)
  }
}

/// Encrypts bytes so that a change of them is noticed: AES-256-GCM of OpenSSL's libcrypto.
package struct Cipher: Sendable {
  private let key: [UInt8]

  /// A cipher with a key of 32 bytes, such as the code of a `KeyedHash`.
  package init(key: [UInt8]) throws(SystemError) {
    if let problem = flowsystem_load_cipher() {
      throw SystemError("can't encrypt: \(ByteString(String(cString: problem)))")
    }
    guard key.count == KeyedHash.size else {
      throw SystemError("can't encrypt: a key has \(KeyedHash.size) bytes, not \(key.count)")
    }
    self.key = key
  }

  private static let nonceSize = Int(FLOWSYSTEM_CIPHER_NONCE)
  private static let tagSize = Int(FLOWSYSTEM_CIPHER_TAG)

  /// Encrypts bytes for one place: at another one they can't be read.
  ///
  /// - Parameters:
  ///   - bytes: The bytes to encrypt.
  ///   - place: The place that the result is bound to.
  ///   - seed: At least 12 bytes that only these bytes have at this place, so that the result is the same each time;
  ///     nil for random ones.
  /// - Returns: The nonce, the tag and the encrypted bytes.
  /// - Throws: A `SystemError` if libcrypto fails.
  package func encrypt(
    _ bytes: [UInt8], for place: [UInt8], seed: [UInt8]? = nil
  ) throws(SystemError) -> [UInt8] {
    let nonce = seed.map { Array($0.prefix(Self.nonceSize)) } ?? Self.randomNonce()
    guard nonce.count == Self.nonceSize else {
      throw SystemError("can't encrypt: a seed has \(Self.nonceSize) bytes, not \(nonce.count)")
    }
    var sealed = [UInt8](repeating: 0, count: bytes.count)
    var tag = [UInt8](repeating: 0, count: Self.tagSize)
    let isDone = withCipher(nonce, place) {
      flowsystem_encrypt($0, bytes, bytes.count, &sealed, &tag)
    }
    if isDone { return nonce + tag + sealed }
    throw SystemError("libcrypto can't encrypt")
  }

  /// 96 random bits: with one key, up to some thousand million values don't share a nonce.
  private static func randomNonce() -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return (0..<nonceSize).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  /// Decrypts what `encrypt` has returned; nil for another key, another place or changed bytes.
  package func decrypt(_ bytes: [UInt8], for place: [UInt8]) -> [UInt8]? {
    let start = Self.nonceSize + Self.tagSize
    guard bytes.count >= start else { return nil }
    let nonce = Array(bytes[..<Self.nonceSize])
    let tag = Array(bytes[Self.nonceSize..<start])
    let sealed = Array(bytes[start...])
    var text = [UInt8](repeating: 0, count: sealed.count)
    let isDone = withCipher(nonce, place) {
      flowsystem_decrypt($0, sealed, sealed.count, tag, &text)
    }
    return isDone ? text : nil
  }

  private func withCipher(
    _ nonce: [UInt8], _ place: [UInt8], _ body: (UnsafePointer<flowsystem_cipher>) -> Bool
  ) -> Bool {
    key.withUnsafeBufferPointer { key in
      nonce.withUnsafeBufferPointer { nonce in
        place.withUnsafeBufferPointer { place in
          var cipher = flowsystem_cipher(
            key: key.baseAddress, nonce: nonce.baseAddress, bound: place.baseAddress,
            bound_count: place.count)
          return body(&cipher)
        }
      }
    }
  }
}
