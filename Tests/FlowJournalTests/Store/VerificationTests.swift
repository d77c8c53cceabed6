import FlowEngine
import Testing

@testable import FlowJournal

@Suite("Verifying a store")
struct VerificationTests {
  /// A store with two runs of one record each.
  private func makeRuns(_ test: TestStore, bytes: ByteString) throws -> [ByteString] {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    return try (0..<2).map { _ in
      let run = try store.begin(script: "/s.lua", words: ["a"], on: loop)
      run.write(makeRecord("op", bytes: bytes))
      run.end(.stopped)
      run.close()
      return run.id
    }
  }

  @Test("A store that is as it was written has no damages")
  func sound() throws {
    let test = try TestStore()
    _ = try makeRuns(test, bytes: ByteString(Array(repeating: 1, count: 100_000)))
    #expect(try test.open().verify().isEmpty)
    #expect(try test.open(isReadOnly: true).verify().isEmpty)
  }

  @Test(
    "A changed column of a record is found, with its run, and the run isn't continued",
    arguments: [
      "state = 0", "attempt = 2", "is_once = 1", "began = 1", "ended = 9", "code = zeroblob(16)",
      "code = x''", "sum = x''", "op = x'00'", "path = x'00'", "key = x''", "label = x''",
      "place = x'00'", "error = x''", "inputs = x'FFFFFFFFFFFFFFFFFF'", "reads = x''",
      "writes = x'01'", "cache = x''", "id = id + 1",
    ] as [ByteString])
  func changedColumn(_ change: ByteString) throws {
    let test = try TestStore()
    let ids = try makeRuns(test, bytes: "value")
    try test.execute("UPDATE records SET \(change) WHERE id > 2 << 40")
    let store = try test.open()
    #expect(store.verify().map(\.run) == [ids[1]])
    #expect(problem { _ = try store.records(of: ids[1]) } == .damaged)
    let loop = makeLoop()
    defer { loop.shutdown() }
    #expect(problem { _ = try store.resume(ids[1], script: "/s.lua", on: loop) } == .damaged)
    #expect(try store.run(ids[1]).epoch == 1)
    #expect(try store.records(of: ids[0]).count == 1)
  }

  @Test(
    "A changed column of a run is found",
    arguments: ["seed = 1", "words = x'FF'", "script = x'00'", "began = 1", "sum = x''"]
      as [ByteString])
  func changedRun(_ change: ByteString) throws {
    let test = try TestStore()
    let ids = try makeRuns(test, bytes: "value")
    try test.execute("UPDATE runs SET \(change) WHERE number = 2")
    let store = try test.open()
    #expect(store.verify().map(\.run) == [ids[1]])
    let loop = makeLoop()
    defer { loop.shutdown() }
    #expect(problem { _ = try store.resume(ids[1], script: "/s.lua", on: loop) } == .damaged)
  }

  @Test("No number in the database is a trap")
  func largeNumbers() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let ids = try makeRuns(test, bytes: "value")
    for number in [Int64.max, Int64.min] {
      try test.execute(
        "UPDATE runs SET epoch = \(number), pid = \(number), start = \(number), beat = 9e999, "
          + "is_held = \(number), is_finished = 0, ended = -9e999")
      try test.execute("UPDATE sqlite_sequence SET seq = \(number)")
      let store = try test.open()
      _ = try store.runs()
      let run = try #require(try store.resume(ids[0], script: "/s.lua", on: loop))
      #expect(run.writeAndWait(makeRecord("op"), on: loop) == nil)
      run.close()
      #expect(problem { try store.begin(script: "/", words: [], on: loop).close() } != .damaged)
      try test.execute("UPDATE records SET attempt = \(number), state = \(number)")
      _ = store.verify()
      _ = try store.prune(limit: 1 << 40)
      try test.execute("UPDATE records SET attempt = 1, state = 1 WHERE id < 2 << 40")
    }
  }

  @Test("A changed file of a value is found, with its run")
  func changedFile() throws {
    let test = try TestStore()
    let ids = try makeRuns(test, bytes: ByteString(Array(repeating: 1, count: 100_000)))
    let files = try DirectoryListing(test.folder + "/values/" + ids[0]).read(Cancellation())
    for file in files { try Files.append("x", to: file.path, Cancellation()) }
    #expect(try test.open().verify().map(\.run) == [ids[0]])
  }

  @Test("No changed byte of the database is a trap, and none of a record goes unnoticed")
  func flippedBytes() throws {
    let test = try TestStore()
    let ids = try makeRuns(test, bytes: "value")
    try test.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    let path = test.folder + "/store.sqlite"
    let sound = try Files.read(path, Cancellation())
    let record = try #require(Self.find("UploadOpop", in: sound))
    var offsets = Set((record..<record + 10).map { $0 })
    var generator = SeededGenerator(state: 7)
    for _ in 0..<60 { offsets.insert(Int.random(in: 100..<sound.count, using: &generator)) }
    for offset in offsets.sorted() {
      var bytes = sound.bytes
      bytes[offset] ^= 0x10
      try Files.write(ByteString(bytes), to: path, Cancellation())
      try? FileRemoval.remove(path + "-wal", recursive: false, Cancellation())
      try? FileRemoval.remove(path + "-shm", recursive: false, Cancellation())
      guard let store = try? test.open(isReadOnly: true) else { continue }
      let damages = store.verify()
      for id in ids { _ = try? store.records(of: id) }
      if (record..<record + 10).contains(offset) {
        #expect(damages.contains { $0.run != nil }, "offset \(offset)")
      }
    }
  }

  private static func find(_ text: ByteString, in bytes: ByteString) -> Int? {
    let (text, bytes) = (text.bytes, bytes.bytes)
    return (0..<bytes.count - text.count).first { bytes[$0..<$0 + text.count].elementsEqual(text) }
  }

  @Test("Changes that SQLite doesn't find any more are noticed")
  func flippedLog() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    // An open store keeps the log.
    let store = try test.open()
    let run = try store.begin(script: "/s.lua", words: [], on: loop)
    for number in 1...10 { #expect(run.writeAndWait(makeRecord("\(number)"), on: loop) == nil) }
    #expect(try ChangeLogCheck.problem(in: test.folder) == nil)
    let path = test.folder + "/store.sqlite-wal"
    let sound = try Files.read(path, Cancellation()).bytes
    for offset in [4, 32 + 8, 32 + 24 + 100, 32 + 3 * (24 + 4096) + 2000] {
      let copy = try TestStore()
      try Folders.make(copy.folder)
      var bytes = sound
      bytes[offset] ^= 1
      let changed = copy.folder + "/store.sqlite-wal"
      try Files.write(ByteString(bytes), to: changed, Cancellation())
      #expect(try ChangeLogCheck.problem(in: copy.folder) != nil, "offset \(offset)")
      // A log that just ends isn't damaged: a crash leaves that.
      try Files.write(ByteString(Array(sound.dropLast(100))), to: changed, Cancellation())
      #expect(try ChangeLogCheck.problem(in: copy.folder) == nil)
    }
    run.close()
  }
}

/// Numbers that are the same in each run of a test.
private struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state ^ state >> 29
  }
}
