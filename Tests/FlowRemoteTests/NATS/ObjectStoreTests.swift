import FlowEngine
@testable import FlowRemote
import Testing

@Suite("An object store")
struct ObjectStoreTests {
  private func makeStore() throws -> (Fixture, ObjectStore) {
    let it = try Fixture()
    let store = try ObjectStore(it.jetStream, bucket: "code_1")
    try it.result { then in
      store.ensureBucket { error in then(error.map { .failure($0) } ?? .success(())) }
    }
    return (it, store)
  }

  private func randomBytes(_ count: Int) -> ByteString {
    var generator = SystemRandomNumberGenerator()
    let words = (0..<(count + 7) / 8).map { _ in UInt64.random(in: 0 ... .max, using: &generator) }
    return ByteString(Array(words.withUnsafeBytes { Array($0) }.prefix(count)))
  }

  @Test("returns what was stored", arguments: [0, 1, 131_072, 131_073, 1 << 20, 10 << 20])
  func roundTrip(count: Int) throws {
    let (it, store) = try makeStore()
    let bytes = randomBytes(count)
    let name: ByteString = "some/file ü.txt"
    let info = try it.result { store.put(name, bytes, then: $0) }
    #expect(info.size == count && info.chunks == (count + 131_071) / 131_072)
    #expect(try it.result { store.info(name, then: $0) } == info)
    #expect(try it.result { store.get(name, then: $0) } == bytes)
    let path = it.server.folder + "/file"
    #expect(try it.result { store.getFile(name, path, then: $0) })
    #expect(try Files.read(path, Cancellation()) == bytes)
    let copy = try it.result { store.putFile("copy", path, then: $0) }
    #expect(copy.digest == info.digest && copy.size == count)
    #expect(try it.result { store.get("copy", then: $0) } == bytes)
  }

  @Test("has the layout of the `nats` tool")
  func layout() throws {
    let (it, store) = try makeStore()
    let info = try it.result { store.put("a", "hello", then: $0) }
    #expect(info.digest == "SHA-256=LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=")
    let meta = try #require(
      try it.result { it.jetStream.getLastMessage("OBJ_code_1", "$O.code_1.M.YQ==", then: $0) })
    let json = try NATSJSON(reading: meta.data)
    #expect(json["name"]?.asBytes == "a" && json["bucket"]?.asBytes == "code_1")
    #expect(json["size"]?.asInteger == 5 && json["chunks"]?.asInteger == 1)
    #expect(json["mtime"]?.asBytes?.count == 30)
    let part = try #require(
      try it.result {
        it.jetStream.getLastMessage("OBJ_code_1", "$O.code_1.C.\(info.nuid)", then: $0)
      })
    #expect(part.data == "hello")
  }

  @Test("stores a file of a known hash once, and refuses another content")
  func knownHash() throws {
    let (it, store) = try makeStore()
    let path = it.server.folder + "/source"
    let bytes = randomBytes(300_000)
    try Files.write(bytes, to: path, Cancellation())
    let hash = try FileHash.sha256.digest(ofFile: path, Cancellation())
    let first = try it.result { store.putFile("a", path, hash: hash, then: $0) }
    #expect(first.isSent && first.info.size == 300_000)
    #expect(first.info.digest == ObjectStore.digest(ofHash: hash))
    let second = try it.result { store.putFile("a", path, hash: hash, then: $0) }
    #expect(!second.isSent && second.info == first.info)
    let copy = it.server.folder + "/copy"
    #expect(try it.result { store.getFile("a", copy, digest: first.info.digest, then: $0) })
    #expect(try Files.read(copy, Cancellation()) == bytes)

    // It was changed after it was hashed: nothing of it stays.
    try Files.write("changed", to: path, Cancellation())
    let error = #expect(throws: FlowError.self) {
      try it.result { store.putFile("b", path, hash: hash, then: $0) }
    }
    #expect(error?.message == "the file was changed while it was sent")
    #expect(try it.result { store.info("b", then: $0) } == nil)
    _ = try it.result { store.put("c", "other", then: $0) }
    let other = #expect(throws: FlowError.self) {
      try it.result { store.getFile("c", copy, digest: first.info.digest, then: $0) }
    }
    #expect(other?.message.hasPrefix("object 'c' has another content: its digest is ") == true)
    #expect(try Files.read(copy, Cancellation()) == bytes)

    store.discard(first.info)
    #expect(try it.result { store.info("a", then: $0) } == nil)
    // The descriptions of `a`, which is deleted, and of `c`, and the part of that one.
    #expect(try it.result { it.jetStream.streamInfo("OBJ_code_1", then: $0) }.messages == 3)
  }

  @Test("has nothing for an unknown name, and deletes objects with their parts")
  func missing() throws {
    let (it, store) = try makeStore()
    #expect(try it.result { store.info("x", then: $0) } == nil)
    #expect(try it.result { store.get("x", then: $0) } == nil)
    #expect(try !it.result { store.getFile("x", it.server.folder + "/none", then: $0) })
    #expect(try !it.result { store.delete("x", then: $0) })
    _ = try it.result { store.put("x", randomBytes(300_000), then: $0) }
    #expect(try it.result { store.delete("x", then: $0) })
    #expect(try it.result { store.get("x", then: $0) } == nil)
    #expect(try it.result { it.jetStream.streamInfo("OBJ_code_1", then: $0) }.messages == 1)
    _ = try it.result { store.put("x", "again", then: $0) }
    #expect(try it.result { store.get("x", then: $0) } == "again")
  }

  @Test("sends the same content once, and replaces another one with its parts")
  func sameContent() throws {
    let (it, store) = try makeStore()
    let bytes = randomBytes(200_000)
    let first = try it.result { store.put("x", bytes, then: $0) }
    let before = try it.result { it.jetStream.streamInfo("OBJ_code_1", then: $0) }
    let second = try it.result { store.put("x", bytes, then: $0) }
    #expect(first == second)
    #expect(try it.result { it.jetStream.streamInfo("OBJ_code_1", then: $0) } == before)
    let third = try it.result { store.put("x", randomBytes(200_000), then: $0) }
    #expect(third.nuid != first.nuid)
    #expect(try it.result { it.jetStream.streamInfo("OBJ_code_1", then: $0) }.messages == 3)
  }

  @Test("reports an object whose content isn't that of its description, and keeps the file")
  func damage() throws {
    let (it, store) = try makeStore()
    let info = try it.result { store.put("x", "hello", then: $0) }
    _ = try it.result {
      it.jetStream.purge("OBJ_code_1", subject: store.chunkSubject(info.nuid), then: $0)
    }
    _ = try it.result { it.jetStream.publish(store.chunkSubject(info.nuid), "hallo", then: $0) }
    let path = it.server.folder + "/file"
    try Files.write("old", to: path, Cancellation())
    let error = try it.error { store.getFile("x", path, then: $0) }
    #expect(error.message.hasPrefix("object 'x' is damaged: its digest is SHA-256="))
    #expect(try Files.read(path, Cancellation()) == "old")
    _ = try it.result { it.jetStream.publish(store.chunkSubject(info.nuid), "more", then: $0) }
    #expect(throws: FlowError.self) { try it.result { store.get("x", then: $0) } }
  }

  @Test("reports files that can't be read, and names that can't be used")
  func problems() throws {
    let (it, store) = try makeStore()
    let missing = try it.error { store.putFile("x", "/nowhere/file", then: $0) }
    #expect(missing.message.hasPrefix("can't read '/nowhere/file'"))
    #expect(try it.result { store.info("x", then: $0) } == nil)
    let noName = try it.error { store.put("", "x", then: $0) }
    #expect(noName.kind == .usage)
    for name: ByteString in ["", "a.b", "a b", "ü", "a/b"] {
      #expect(throws: FlowError.self) { _ = try ObjectStore(it.jetStream, bucket: name) }
    }
    let other = try ObjectStore(it.jetStream, bucket: "none")
    let noBucket = try it.error { other.put("x", "y", then: $0) }
    #expect(noBucket.message == "\(it.server.url): stream not found (nats_10059)")
  }

  @Test("reports a bucket without room, and keeps the earlier object")
  func fullBucket() throws {
    let it = try Fixture()
    let store = try ObjectStore(it.jetStream, bucket: "small")
    try it.result { then in
      store.ensureBucket(maxBytes: 1 << 20) { error in
        then(error.map { .failure($0) } ?? .success(()))
      }
    }
    let bytes = randomBytes(1000)
    _ = try it.result { store.put("x", bytes, then: $0) }
    let error = try it.error { store.put("x", randomBytes(3 << 20), then: $0) }
    #expect(error.jetStreamCode == 10077, "\(error.message)")
    #expect(try it.result { store.get("x", then: $0) } == bytes)
    #expect(try it.result { it.jetStream.streamInfo("OBJ_small", then: $0) }.messages == 2)
  }

  @Test("says that an object was deleted while it was received")
  func deleted() throws {
    let (it, store) = try makeStore()
    let info = try it.result { store.put("x", randomBytes(20 << 20), then: $0) }
    let path = it.server.folder + "/file"
    var got: Result<Bool, FlowError>?
    store.getFile("x", path, digest: info.digest) { got = $0 }
    for _ in 0..<20 { _ = it.loop.turn(mayBlock: true) }
    store.discard(info)
    it.wait(seconds: 30) { got != nil }
    let error = #expect(throws: FlowError.self) { try got?.get() }
    #expect(error?.message.hasSuffix("object 'x' was deleted while it was received") == true)
    #expect(try !FileStatus.exists(path))
  }

  @Test("continues to receive after its server was killed and started again")
  func reconnect() throws {
    let (it, store) = try makeStore()
    let bytes = randomBytes(4 << 20)
    _ = try it.result { store.put("x", bytes, then: $0) }
    var got: Result<ByteString?, FlowError>?
    store.get("x") { got = $0 }
    for _ in 0..<20 { _ = it.loop.turn(mayBlock: true) }
    it.server.kill()
    try it.server.start()
    it.wait(seconds: 30) { got != nil }
    #expect(try got?.get() == bytes)
  }
}
