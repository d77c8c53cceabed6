package import FlowEngine

/// Seals what scripts and machines send each other with the key that both have: nobody else can read it, change it or
/// add to it, although they may use the server.
///
/// The text of the key becomes keys for each purpose by HKDF with SHA-256, and messages are encrypted by AES-256-GCM,
/// each script's with a key of its own: each has far fewer messages than two of them would need to share a nonce.
/// A message is bound to its subject. HKDF is quick, so the text has to be a random one, not a word.
package final class RemoteSeal {
  /// What everybody may know of the key, to tell that the other side has another one.
  package let name: ByteString
  /// Makes the key of a script from its id.
  private let scripts: KeyedHash
  private let machines: KeyedHash
  private let codes: Cipher
  private let codeSeeds: KeyedHash

  /// The fewest bytes of a key.
  package static let shortest = 16

  /// Makes the keys of the text of `FLOWLUA_REMOTE_KEY`.
  package init(text: ByteString) throws(FlowError) {
    do throws(SystemError) {
      // RFC 5869: extract, then one block of expand for each purpose.
      let root = try KeyedHash(
        key: KeyedHash(key: Array("flowlua remote".utf8)).code(of: text.bytes))
      func key(_ purpose: String) throws(SystemError) -> [UInt8] {
        try root.code(of: Array(purpose.utf8) + [1])
      }
      name = try key("name").prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }.hexadecimal
      scripts = try KeyedHash(key: key("scripts"))
      machines = try KeyedHash(key: key("machines"))
      codes = try Cipher(key: key("codes"))
      codeSeeds = try KeyedHash(key: key("seeds of codes"))
    } catch {
      throw .from(error)
    }
  }

  /// Refuses a text that is too short for a key.
  package static func check(_ text: ByteString) throws(FlowError) {
    if text.count < shortest {
      throw .usage("FLOWLUA_REMOTE_KEY has \(text.count) bytes; at least \(shortest) are needed")
    }
  }

  /// Seals a message of a script, or for one.
  func seal(
    _ bytes: [UInt8], for subject: ByteString, of script: ByteString
  ) throws(FlowError) -> [UInt8] {
    do throws(SystemError) {
      let key = try scripts.code(of: script.bytes)
      return try Cipher(key: key).encrypt(bytes, for: subject.bytes)
    } catch {
      throw .from(error)
    }
  }

  /// Reads what `seal` has returned; nil for anything else.
  func open(_ bytes: [UInt8], for subject: ByteString, of script: ByteString) -> [UInt8]? {
    guard let key = try? scripts.code(of: script.bytes), let cipher = try? Cipher(key: key) else {
      return nil
    }
    return cipher.decrypt(bytes, for: subject.bytes)
  }

  /// Seals code that any script may have sent: the same bytes each time, so that it is stored once.
  package func seal(code: [UInt8]) throws(FlowError) -> [UInt8] {
    do throws(SystemError) {
      return try codes.encrypt(code, for: [], seed: codeSeeds.code(of: code))
    } catch {
      throw .from(error)
    }
  }

  /// Reads sealed code; nil for anything else.
  package func open(code: [UInt8]) -> [UInt8]? { codes.decrypt(code, for: []) }

  /// What a machine says of itself, with the proof that it has the key. It can be read without the key.
  package func proven(_ bytes: [UInt8]) throws(FlowError) -> [UInt8] {
    do throws(SystemError) { return try bytes + machines.code(of: bytes) } catch {
      throw .from(error)
    }
  }

  /// Whether bytes end with the proof.
  package func isProven(_ bytes: [UInt8]) -> Bool {
    bytes.count >= KeyedHash.size
      && machines.isCode(
        Array(bytes.suffix(KeyedHash.size)), of: Array(bytes.dropLast(KeyedHash.size)))
  }
}
