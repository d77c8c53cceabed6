internal import CFlowSystem
package import FlowEngine

/// Encrypts values that mustn't be readable in a store: AES-256-GCM of OpenSSL's libcrypto.
///
/// The key is made of the text that the user keeps, and of the key of the store as the salt, by HKDF with SHA-256: the
/// same text is another key for another store. HKDF is quick, so the text has to be a random one, not a word.
package final class StoreCipher {
  private let key: [UInt8]

  /// A cipher for a store, with the text of `FLOWLUA_STORE_KEY`.
  package init(text: ByteString, of store: JournalStore) throws(FlowError) {
    if let problem = flowsystem_load_cipher() {
      throw FlowError(.error, "can't encrypt: \(ByteString(String(cString: problem)))")
    }
    // RFC 5869: extract, then one block of expand.
    let extracted = try DigestMaker(key: store.key).code(of: text.bytes)
    let info = Array("flowlua secrets".utf8) + [1]
    key = try DigestMaker(key: extracted).code(of: info)
  }

  private static let nonceSize = Int(FLOWSYSTEM_CIPHER_NONCE)
  private static let tagSize = Int(FLOWSYSTEM_CIPHER_TAG)

  /// Encrypts bytes for one place: at another one they can't be read.
  package func encrypt(_ bytes: [UInt8], for place: [UInt8]) throws(FlowError) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    // 96 random bits: with one key, far more values than a store can have don't share a nonce.
    let nonce = (0..<Self.nonceSize).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    var sealed = [UInt8](repeating: 0, count: bytes.count)
    var tag = [UInt8](repeating: 0, count: Self.tagSize)
    let isDone = withCipher(nonce, place) {
      flowsystem_encrypt($0, bytes, bytes.count, &sealed, &tag)
    }
    if isDone { return nonce + tag + sealed }
    throw FlowError(.error, "libcrypto can't encrypt")
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

extension OpRecord {
  /// What an encrypted value is bound to: elsewhere it can't be read.
  func binding(of name: ByteString, in run: ByteString) -> [UInt8] {
    var place = RecordWriter()
    for part in [run, op, key, name] { place.add(part) }
    return place.bytes
  }
}
