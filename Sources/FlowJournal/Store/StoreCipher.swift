package import FlowEngine

/// Encrypts values that mustn't be readable in a store, by AES-256-GCM.
///
/// The key is made of the text that the user keeps, and of the key of the store as the salt, by HKDF with SHA-256: the
/// same text is another key for another store. HKDF is quick, so the text has to be a random one, not a word.
package final class StoreCipher {
  private let cipher: Cipher

  /// A cipher for a store, with the text of `FLOWLUA_STORE_KEY`.
  package init(text: ByteString, of store: JournalStore) throws(FlowError) {
    do throws(SystemError) {
      // RFC 5869: extract, then one block of expand.
      let extracted = try KeyedHash(key: store.key).code(of: text.bytes)
      let info = Array("flowlua secrets".utf8) + [1]
      cipher = try Cipher(key: KeyedHash(key: extracted).code(of: info))
    } catch {
      throw .from(error)
    }
  }

  /// Encrypts bytes for one place: at another one they can't be read.
  package func encrypt(_ bytes: [UInt8], for place: [UInt8]) throws(FlowError) -> [UInt8] {
    do throws(SystemError) { return try cipher.encrypt(bytes, for: place) } catch {
      throw .from(error)
    }
  }

  /// Decrypts what `encrypt` has returned; nil for another key, another place or changed bytes.
  package func decrypt(_ bytes: [UInt8], for place: [UInt8]) -> [UInt8]? {
    cipher.decrypt(bytes, for: place)
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
