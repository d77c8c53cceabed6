import FlowEngine
@testable import FlowRemote
import Testing

@Suite("An object store")
struct ObjectStoreTests {
  private func makeStore() throws -> (Fixture, ObjectStore) {
    let it = try Fixture()
    let store = try ObjectStore(it.jetStream, bucket: "code_1")
    try it.result { try await store.ensureBucket() }
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
    let info = try it.result { try await store.put(name, bytes) }
    #expect(info.size == count && info.chunks == (count + 131_071) / 131_072)
    #expect(try it.result { try await store.info(name) } == info)
    #expect(try it.result { try await store.get(name) } == bytes)
    let path = it.server.folder + "/file"
    #expect(try it.result { try await store.getFile(name, path) })
    #expect(try Files.read(path, Cancellation()) == bytes)
    let copy = try it.result { try await store.putFile("copy", path) }
    #expect(copy.digest == info.digest && copy.size == count)
    #expect(try it.result { try await store.get("copy") } == bytes)
  }

  @Test("has the layout of the `nats` tool")
  func layout() throws {
    let (it, store) = try makeStore()
    let info = try it.result { try await store.put("a", "hello") }
    #expect(info.digest == "SHA-256=LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=")
    let meta = try #require(
      try it.result { try await it.jetStream.getLastMessage("OBJ_code_1", "$O.code_1.M.YQ==") })
    let json = try NATSJSON(reading: meta.data)
    #expect(json["name"]?.asBytes == "a" && json["bucket"]?.asBytes == "code_1")
    #expect(json["size"]?.asInteger == 5 && json["chunks"]?.asInteger == 1)
    #expect(json["mtime"]?.asBytes?.count == 30)
    let part = try #require(
      try it.result {
        try await it.jetStream.getLastMessage("OBJ_code_1", "$O.code_1.C.\(info.nuid)")
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
    let first = try it.result { try await store.putFile("a", path, hash: hash) }
    #expect(first.isSent && first.info.size == 300_000)
    #expect(first.info.digest == ObjectStore.digest(ofHash: hash))
    let second = try it.result { try await store.putFile("a", path, hash: hash) }
    #expect(!second.isSent && second.info == first.info)
    let copy = it.server.folder + "/copy"
    #expect(try it.result { try await store.getFile("a", copy, digest: first.info.digest) })
    #expect(try Files.read(copy, Cancellation()) == bytes)

    // It was changed after it was hashed: nothing of it stays.
    try Files.write("changed", to: path, Cancellation())
    let error = #expect(throws: FlowError.self) {
      try it.result { try await store.putFile("b", path, hash: hash) }
    }
    #expect(error?.message == "the file was changed while it was sent")
    #expect(try it.result { try await store.info("b") } == nil)
    _ = try it.result { try await store.put("c", "other") }
    let other = #expect(throws: FlowError.self) {
      try it.result { try await store.getFile("c", copy, digest: first.info.digest) }
    }
    #expect(other?.message.hasPrefix("object 'c' has another content: its digest is ") == true)
    #expect(try Files.read(copy, Cancellation()) == bytes)

    store.discard(first.info)
    #expect(try it.result { try await store.info("a") } == nil)
    // The descriptions of `a`, which is deleted, and of `c`, and the part of that one.
    #expect(try it.result { try await it.jetStream.streamInfo("OBJ_code_1") }.messages == 3)
  }

  @Test("has nothing for an unknown name, and deletes objects with their parts")
  func missing() throws {
    let (it, store) = try makeStore()
    #expect(try it.result { try await store.info("x") } == nil)
    #expect(try it.result { try await store.get("x") } == nil)
    #expect(try !it.result { try await store.getFile("x", it.server.folder + "/none") })
    #expect(try !it.result { try await store.delete("x") })
    _ = try it.result { try await store.put("x", randomBytes(300_000)) }
    #expect(try it.result { try await store.delete("x") })
    #expect(try it.result { try await store.get("x") } == nil)
    #expect(try it.result { try await it.jetStream.streamInfo("OBJ_code_1") }.messages == 1)
    _ = try it.result { try await store.put("x", "again") }
    #expect(try it.result { try await store.get("x") } == "again")
  }

  @Test("sends the same content once, and replaces another one with its parts")
  func sameContent() throws {
    let (it, store) = try makeStore()
    let bytes = randomBytes(200_000)
    let first = try it.result { try await store.put("x", bytes) }
    let before = try it.result { try await it.jetStream.streamInfo("OBJ_code_1") }
    let second = try it.result { try await store.put("x", bytes) }
    #expect(first == second)
    #expect(try it.result { try await it.jetStream.streamInfo("OBJ_code_1") } == before)
    let third = try it.result { try await store.put("x", randomBytes(200_000)) }
    #expect(third.nuid != first.nuid)
    #expect(try it.result { try await it.jetStream.streamInfo("OBJ_code_1") }.messages == 3)
  }

  @Test("reports an object whose content isn't that of its description, and keeps the file")
  func damage() throws {
    let (it, store) = try makeStore()
    let info = try it.result { try await store.put("x", "hello") }
    _ = try it.result {
      try await it.jetStream.purge("OBJ_code_1", subject: store.chunkSubject(info.nuid))
    }
    _ = try it.result { try await it.jetStream.publish(store.chunkSubject(info.nuid), "hallo") }
    let path = it.server.folder + "/file"
    try Files.write("old", to: path, Cancellation())
    let error = try it.error { try await store.getFile("x", path) }
    #expect(error.message.hasPrefix("object 'x' is damaged: its digest is SHA-256="))
    #expect(try Files.read(path, Cancellation()) == "old")
    _ = try it.result { try await it.jetStream.publish(store.chunkSubject(info.nuid), "more") }
    #expect(throws: FlowError.self) { try it.result { try await store.get("x") } }
  }

  @Test("reports files that can't be read, and names that can't be used")
  func problems() throws {
    let (it, store) = try makeStore()
    let missing = try it.error { try await store.putFile("x", "/nowhere/file") }
    #expect(missing.message.hasPrefix("can't read '/nowhere/file'"))
    #expect(try it.result { try await store.info("x") } == nil)
    let noName = try it.error { try await store.put("", "x") }
    #expect(noName.kind == .usage)
    for name: ByteString in ["", "a.b", "a b", "ü", "a/b"] {
      #expect(throws: FlowError.self) { _ = try ObjectStore(it.jetStream, bucket: name) }
    }
    let other = try ObjectStore(it.jetStream, bucket: "none")
    let noBucket = try it.error { try await other.put("x", "y") }
    #expect(noBucket.message == "\(it.server.url): stream not found (nats_10059)")
  }

  @Test("reports a bucket without room, and keeps the earlier object")
  func fullBucket() throws {
    let it = try Fixture()
    let store = try ObjectStore(it.jetStream, bucket: "small")
    try it.result { try await store.ensureBucket() }
    let config = try it.result { try await it.jetStream.call("STREAM.INFO.OBJ_small") }["config"]
    let limited = config?.replacing([NATSJSON.Member("max_bytes", .integer(1 << 20))])
    _ = try it.result { try await it.jetStream.call("STREAM.UPDATE.OBJ_small", limited) }
    let bytes = randomBytes(1000)
    _ = try it.result { try await store.put("x", bytes) }
    let error = try it.error { try await store.put("x", randomBytes(3 << 20)) }
    #expect(error.jetStreamCode == 10077, "\(error.message)")
    #expect(try it.result { try await store.get("x") } == bytes)
    #expect(try it.result { try await it.jetStream.streamInfo("OBJ_small") }.messages == 2)
  }

  @Test("says that an object was deleted while it was received")
  func deleted() throws {
    let (it, store) = try makeStore()
    let info = try it.result { try await store.put("x", randomBytes(20 << 20)) }
    let path = it.server.folder + "/file"
    var got: Result<Bool, FlowError>?
    it.connection.perform({ try await store.getFile("x", path, digest: info.digest) }) { got = $0 }
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
    _ = try it.result { try await store.put("x", bytes) }
    var got: Result<ByteString?, FlowError>?
    it.connection.perform({ try await store.get("x") }) { got = $0 }
    for _ in 0..<20 { _ = it.loop.turn(mayBlock: true) }
    it.server.kill()
    try it.server.start()
    it.wait(seconds: 30) { got != nil }
    #expect(try got?.get() == bytes)
  }
}
