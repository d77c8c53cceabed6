internal import CFlowSystem

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
  ///   - bytes: What is encrypted.
  ///   - place: What it is bound to.
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
