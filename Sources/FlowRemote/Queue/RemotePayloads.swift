package import FlowEngine

/// The payloads of messages: their bytes, or the name of the object that has them if they are too large for a message.
package final class RemotePayloads {
  private let objects: ObjectStore

  package init(_ objects: ObjectStore) {
    self.objects = objects
  }

  /// The bytes that a message needs besides its payload.
  private static let overhead = 1024
  /// How the names of objects begin that belong to one message.
  private static let prefix: ByteString = "value-"

  /// Makes the payload of bytes, and stores the object for it if it needs one.
  package func make(of bytes: [UInt8]) async throws(FlowError) -> ByteString {
    if bytes.count + Self.overhead <= objects.jetStream.connection.maxPayload {
      return ByteString([0] + bytes)
    }
    let bytes = ByteString(bytes)
    let hash = try asFlowErrors { () throws(SystemError) in
      try FileHash.sha256.digest(of: bytes, Cancellation())
    }
    let name = Self.prefix + hash
    try await objects.put(name, bytes)
    return ByteString([1] + name.bytes)
  }

  /// The object that has the bytes of a payload; nil for one that has them itself.
  static func object(of payload: ByteString) -> ByteString? {
    guard payload.bytes.first == 1 else { return nil }
    let name = ByteString(payload.bytes.dropFirst())
    return name.hasPrefix(prefix) ? name : nil
  }

  /// Removes the object of a payload that nobody reads any more; that it stays is no error.
  package func release(_ payload: ByteString) async {
    if let name = Self.object(of: payload) { _ = try? await objects.delete(name) }
  }

  /// The bytes of a payload; nil for one of another program, or whose object is gone.
  package func content(of payload: ByteString) async throws(FlowError) -> [UInt8]? {
    if payload.bytes.first == 0 { return Array(payload.bytes.dropFirst()) }
    guard let name = Self.object(of: payload) else { return nil }
    return try await objects.get(name)?.bytes
  }
}

extension NATSConnection {
  /// Connects to servers for something that has its objects in a bucket there, and prepares it. The connection is closed
  /// if that fails.
  ///
  /// - Parameters:
  ///   - settings: The servers.
  ///   - bucket: The name of the bucket.
  ///   - loop: The loop on which all of it is used.
  ///   - prepare: Makes it of the streams and the bucket.
  /// - Throws: The error of the server, or the connection's.
  /// - Returns: It.
  package static func open<Value>(
    _ settings: NATSSettings, bucket: ByteString, on loop: FlowEventLoop,
    _ prepare: (JetStream, ObjectStore) async throws -> Value
  ) async throws(FlowError) -> Value {
    let connection = try await connect(settings, on: loop)
    do {
      let stream = JetStream(connection)
      let objects = try ObjectStore(stream, bucket: bucket)
      let made = try await prepare(stream, objects)
      try await objects.ensureBucket(replicas: RemoteQueue.copies)
      return made
    } catch {
      connection.close()
      throw .from(error)
    }
  }
}

/// Seals what scripts and nodes send each other with the key that both have: nobody else can read it, change it or
/// add to it, although they may use the server.
///
/// The text of the key becomes keys for each purpose by HKDF with SHA-256, and messages are encrypted by AES-256-GCM,
/// each script's with a key of its own: each has far fewer messages than two of them would need to share a nonce.
/// A message is bound to its subject. HKDF is quick, so the text has to be a random one, not a word.
package final class RemoteSeal {
  /// The part of the key that everybody may know, to tell that the other side has another one.
  package let name: ByteString
  /// Makes the key of a script from its id.
  private let scripts: KeyedHash
  private let nodes: KeyedHash
  private let codes: Cipher
  private let codeSeeds: KeyedHash

  /// The fewest bytes of a key.
  package static let shortest = 16

  /// Makes the keys of the text of `FLOWLUA_REMOTE_KEY`.
  package init(text: ByteString) throws(FlowError) {
    do throws(SystemError) {
      // RFC 5869: extract, then one block of expand for each purpose.
      let root = try KeyedHash(
        key: KeyedHash(key: "flowlua remote".bytes).code(of: text.bytes))
      func key(_ purpose: String) throws(SystemError) -> [UInt8] {
        try root.code(of: Array(purpose.utf8) + [1])
      }
      name = try key("name").prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }.hexadecimal
      scripts = try KeyedHash(key: key("scripts"))
      nodes = try KeyedHash(key: key("nodes"))
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
  package func seal(
    _ bytes: [UInt8], for subject: ByteString, of script: ByteString
  ) throws(FlowError) -> [UInt8] {
    try asFlowErrors { () throws(SystemError) in
      try Cipher(key: scripts.code(of: script.bytes)).encrypt(bytes, for: subject.bytes)
    }
  }

  /// Reads what `seal` has returned; nil for anything else.
  package func open(_ bytes: [UInt8], for subject: ByteString, of script: ByteString) -> [UInt8]? {
    let cipher = try? Cipher(key: scripts.code(of: script.bytes))
    return cipher?.decrypt(bytes, for: subject.bytes)
  }

  /// Seals code that any script may have sent: the same bytes each time, so that it is stored once.
  package func seal(code: [UInt8]) throws(FlowError) -> [UInt8] {
    try asFlowErrors { () throws(SystemError) in
      try codes.encrypt(code, for: [], seed: codeSeeds.code(of: code))
    }
  }

  /// Reads sealed code; nil for anything else.
  package func open(code: [UInt8]) -> [UInt8]? { codes.decrypt(code, for: []) }

  /// A node's description of itself, with the proof that it has the key. It can be read without the key.
  package func proven(_ bytes: [UInt8]) throws(FlowError) -> [UInt8] {
    try asFlowErrors { () throws(SystemError) in try bytes + nodes.code(of: bytes) }
  }

  /// Whether bytes end with the proof.
  package func isProven(_ bytes: [UInt8]) -> Bool {
    bytes.count >= KeyedHash.size
      && nodes.isCode(
        Array(bytes.suffix(KeyedHash.size)), of: Array(bytes.dropLast(KeyedHash.size)))
  }
}
