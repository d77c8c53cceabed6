import FlowEngine
import FlowSystem
import Testing

@testable import FlowJournal

@Suite("The store of kept runs")
struct JournalStoreTests {
  private func makeRun(
    _ store: JournalStore, on loop: FlowEventLoop, finished: Bool = true,
    bytes: ByteString = "value"
  ) throws -> ByteString {
    let run = try store.begin(script: "/s.lua", words: [], on: loop)
    run.write(makeRecord("op", bytes: bytes))
    run.end(finished ? .finished : .stopped)
    run.close()
    try #require(run.failure == nil)
    return run.id
  }

  @Test("The folder and its files are for their user only")
  func permissions() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let large = ByteString(Array(repeating: 1, count: 100_000))
    let store = try test.open()
    let id = try makeRun(store, on: loop, bytes: large)
    func mode(_ name: ByteString) throws -> UInt32? {
      try FileStatus.read(test.folder + name, follows: false)?.mode
    }
    #expect(try mode("") == 0o700)
    for name in ["/key", "/store.sqlite", "/store.sqlite-wal"] as [ByteString] {
      #expect(try mode(name) == 0o600)
    }
    #expect(try mode("/values/" + id) == 0o700)
    let values = try DirectoryListing(test.folder + "/values/" + id).read(Cancellation())
    #expect(values.count == 1)
    for value in values { #expect(try FileStatus.read(value.path, follows: false)?.mode == 0o600) }
  }

  @Test("Digests are equal in one store, and different in another one")
  func digests() throws {
    let (first, second) = (try TestStore(), try TestStore())
    let digest = try first.open().digest("text")
    #expect(try first.open().digest("text") == digest)
    #expect(try first.open().digest("texu") != digest)
    #expect(try second.open().digest("text") != digest)
    #expect(digest.description.utf8.count == 32)
  }

  @Test("A digest is the HMAC of the bytes")
  func hmac() throws {
    // RFC 4231, test case 2.
    let maker = try DigestMaker(key: Array("Jefe".utf8))
    let digest = try maker.digest(of: Array("what do ya want for nothing?".utf8))
    #expect(digest.description == "5bdcc146bf60754e6a042426089575c7")
  }

  @Test("A store that is opened only to read has to exist, and can't be written")
  func readOnly() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    #expect(problem { _ = try test.open(isReadOnly: true) } == .missing)
    #expect(try FileStatus.exists(test.folder) == false)
    let id = try makeRun(try test.open(), on: loop)
    let store = try test.open(isReadOnly: true)
    #expect(try store.runs().map(\.id) == [id])
    #expect(try store.records(of: id).count == 1)
    #expect(problem { _ = try store.begin(script: "", words: [], on: loop) } == .notAllowed)
    #expect(problem { try store.forget(id) } == .notAllowed)
  }

  @Test("The store of a later version is refused, with both versions")
  func laterVersion() throws {
    let test = try TestStore()
    _ = try test.open()
    try test.execute("PRAGMA user_version = 7")
    for isReadOnly in [false, true] {
      do {
        _ = try test.open(isReadOnly: isReadOnly)
        Issue.record("the store was opened")
      } catch {
        #expect(error.storeProblem == .newer)
        #expect(error.message.description.contains("schema 7; this one reads up to 6"))
      }
    }
  }

  @Test("A store without its key is an error")
  func lostKey() throws {
    let test = try TestStore()
    _ = try test.open()
    try FileRemoval.remove(test.folder + "/key", recursive: false, Cancellation())
    #expect(problem { _ = try test.open() } == .damaged)
    try Files.write("short", to: test.folder + "/key", Cancellation())
    #expect(problem { _ = try test.open() } == .damaged)
  }

  @Test("A store can be made by many at once, and then they all have the same one")
  func madeAtOnce() async throws {
    let test = try TestStore()
    let folder = test.folder
    let ids = try await withThrowingTaskGroup(of: ByteString.self) { group in
      for _ in 0..<8 {
        group.addTask {
          let store = try JournalStore(folder: folder, isReadOnly: false)
          let loop = makeLoop()
          defer { loop.shutdown() }
          let run = try store.begin(script: "/s.lua", words: [], on: loop)
          run.write(makeRecord("op"))
          run.close()
          if let failure = run.failure { throw failure }
          return run.id
        }
      }
      return try await group.reduce(into: Set<ByteString>()) { $0.insert($1) }
    }
    #expect(ids.count == 8)
    let store = try test.open()
    #expect(Set(try store.runs().map(\.id)) == ids)
    #expect(store.verify().isEmpty)
  }

  @Test("A file that is no database is an error")
  func otherFile() throws {
    let test = try TestStore()
    _ = try test.open()
    let path = test.folder + "/store.sqlite"
    try Files.write(ByteString(Array(repeating: 65, count: 5000)), to: path, Cancellation())
    #expect(problem { _ = try test.open() } == .damaged)
    #expect(problem { _ = try test.open(isReadOnly: true) } == .damaged)
  }

  @Test("A store that was removed while it was in use is an error, not an empty one")
  func removedStore() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let run = try test.open().begin(script: "/s.lua", words: [], on: loop)
    #expect(run.writeAndWait(makeRecord("a"), on: loop) == nil)
    try FileRemoval.remove(test.folder, recursive: true, Cancellation())
    #expect(run.writeAndWait(makeRecord("b"), on: loop)?.storeProblem == .removed)
    // A new store at the same place isn't the one of the run.
    _ = try test.open()
    #expect(run.writeAndWait(makeRecord("c"), on: loop)?.storeProblem == .removed)
    run.close()
    #expect(try test.number("SELECT count(*) FROM records") == 0)
  }

  @Test("A full disk is an error that says so, and nothing of the transaction stays")
  func fullDisk() throws {
    let test = try TestStore()
    _ = try test.open()
    let database = try StoreDatabase(folder: test.folder, mode: .readWrite, patience: 100)
    try database.execute("PRAGMA max_page_count = 1")
    let table = try RecordTable(database, try DigestMaker(key: []))
    let found = problem {
      try database.transaction { () throws(FlowError) in
        for number in 1...1000 {
          var record = makeRecord("op", bytes: ByteString(Array(repeating: 1, count: 5000)))
          record.id = Int64(number)
          try table.write(record)
        }
      }
    }
    #expect(found == .full)
    #expect(try test.number("SELECT count(*) FROM records") == 0)
  }

  @Test(
    "A network file system has a name, a local one none",
    arguments: [(0x6969, "NFS"), (0xFF53_4D42, "SMB"), (0xEF53, nil), (0x0102_1994, nil)]
      as [(Int64, ByteString?)])
  func networkFileSystems(_ type: Int64, _ name: ByteString?) {
    #expect(StoreKey.networkName(of: type) == name)
  }

  @Test("Runs are listed in their order, whatever the clock said")
  func order() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let ids = try (0..<5).map { _ in try makeRun(store, on: loop, finished: false) }
    try test.execute("UPDATE runs SET began = -number, ended = -number, beat = -number")
    #expect(try store.runs().map(\.id) == ids)
    #expect(try store.unfinishedRun(of: "/s.lua") == ids.last)
  }

  @Test("A removed run is gone with its records and files; its number isn't given again")
  func forget() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let large = ByteString(Array(repeating: 1, count: 100_000))
    let first = try makeRun(store, on: loop, bytes: large)
    try store.forget(first)
    #expect(try store.runs().isEmpty)
    #expect(problem { _ = try store.records(of: first) } == .missing)
    #expect(problem { try store.forget(first) } == .missing)
    #expect(try test.number("SELECT count(*) FROM records") == 0)
    #expect(try FileStatus.exists(test.folder + "/values/" + first) == false)
    _ = try makeRun(store, on: loop)
    #expect(try test.number("SELECT max(number) FROM runs") == 2)
  }

  @Test("Pruning keeps 20 finished runs and everything of 30 days")
  func prune() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    var ids: [ByteString] = []
    for number in 1...25 { ids.append(try makeRun(store, on: loop, finished: number != 24)) }
    #expect(try store.prune() == [])
    let old = Int64(WallClock.now()) - 31 * 86_400
    try test.execute("UPDATE runs SET ended = \(old), beat = \(old) WHERE number <> 2")
    // Of 24 finished runs the last 20 stay, and one that is young; the unfinished one is old.
    #expect(try store.prune() == [ids[0], ids[2], ids[3], ids[23]])
    #expect(try store.forget(olderThan: 86_400).count == 20)
    #expect(try store.runs().map(\.id) == [ids[1]])
  }

  @Test("A store that is too large loses its oldest runs, first those that are finished")
  func sizeLimit() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let large = ByteString(Array(repeating: 1, count: 200_000))
    var ids: [ByteString] = []
    for number in 1...5 {
      ids.append(try makeRun(store, on: loop, finished: number != 1, bytes: large))
    }
    let size = try store.size()
    #expect(size > 1_000_000)
    #expect(try store.prune(limit: size) == [])
    #expect(try store.prune(limit: size - 300_000) == [ids[1], ids[2]])
    let live = try store.begin(script: "/live.lua", words: [], on: loop)
    #expect(try store.prune(limit: 0) == [ids[3], ids[4], ids[0]])
    #expect(try store.runs().map(\.id) == [live.id])
    live.close()
  }

  @Test("Files that a crash has left are removed")
  func leftFiles() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let id = try makeRun(
      store, on: loop, bytes: ByteString(Array(repeating: 1, count: 100_000)))
    try Folders.make(test.folder + "/values/rzzz")
    try Files.write("x", to: test.folder + "/values/rzzz/0", Cancellation())
    #expect(try store.prune() == [])
    #expect(try FileStatus.exists(test.folder + "/values/rzzz") == false)
    #expect(try FileStatus.exists(test.folder + "/values/" + id))
  }
}
