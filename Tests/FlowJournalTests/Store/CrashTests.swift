#if DEBUG
  import FlowEngine
  import Glibc
  import Testing

  @testable import FlowJournal

  @Suite("A crash at any point")
  struct CrashTests {
    /// How many failpoints `work` passes.
    private static let count = 55

    /// Begins a run, and writes two small records and one with a file; each that is on the disk is noted in
    /// another file.
    private static func work(_ test: (store: ByteString, done: ByteString)) throws {
      let loop = makeLoop()
      defer { loop.shutdown() }
      let store = try JournalStore(folder: test.store, isReadOnly: false)
      let run = try store.begin(script: "/s.lua", words: [], on: loop)
      let large = ByteString(Array(repeating: 1, count: 100_000))
      let values: [ByteString] = ["a", large, "c"]
      for value in values {
        let error = run.writeAndWait(makeRecord("op", bytes: value), on: loop)
        if error == nil { try Files.append(".", to: test.done, Cancellation()) }
      }
      run.end(.finished)
      run.close()
    }

    @Test(
      "leaves a store that another process continues from, with all that was on the disk",
      arguments: 1...count)
    func crash(at point: Int) async throws {
      let test = try TestStore()
      let (store, done) = (test.folder.description, test.parent.description + "/done")
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [store = store as String, done = done as String, point = point as Int] in
        setenv("FLOWLUA_CRASH_AT", "\(point)", 1)
        try Self.work((ByteString(store), ByteString(done)))
      }
      try continueRun(test, done: ByteString(done))
    }

    private func continueRun(_ test: TestStore, done: ByteString) throws {
      let acknowledged = (try? Files.read(done, Cancellation()).count) ?? 0
      let loop = makeLoop()
      defer { loop.shutdown() }
      let store = try test.open()
      #expect(store.verify().isEmpty)
      guard let run = try store.runs().last else {
        #expect(acknowledged == 0)
        return
      }
      let next = try #require(try store.resume(run.id, script: "/s.lua", on: loop))
      #expect(next.epoch == 2)
      // One may be on the disk without having been noted.
      #expect((acknowledged...acknowledged + 1).contains(next.records.count))
      for record in next.records {
        for write in record.writes { _ = try store.load(write) }
      }
      #expect(next.writeAndWait(makeRecord("later"), on: loop) == nil)
      next.close()
    }

    @Test("can't come at more points than these tests have")
    func allPoints() async throws {
      let test = try TestStore()
      let (store, done) = (test.folder.description, test.parent.description + "/done")
      let last = Self.count + 1
      await #expect(processExitsWith: .success) {
        [store = store as String, done = done as String, last = last as Int] in
        setenv("FLOWLUA_CRASH_AT", "\(last)", 1)
        try Self.work((ByteString(store), ByteString(done)))
      }
    }
  }
#endif
