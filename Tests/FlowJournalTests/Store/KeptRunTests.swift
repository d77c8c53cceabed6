import FlowEngine
@testable import FlowJournal
import Testing

@Suite("A kept run")
struct KeptRunTests {
  @Test("What a process wrote is what the next one reads, in order")
  func roundTrip() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    var full = makeRecord("ship/UploadOp #7")
    full.label = "seven"
    full.reads = [KeptInput(name: "\u{0}odd", digest: Digest(high: 9, low: 8))]
    full.state = .failed
    full.attempt = 3
    full.isOnce = true
    full.error = ""
    full.place = "ship.lua:31"
    let files = [NamedFile(path: "a.o", content: Digest(high: 5, low: 6))]
    full.writes = [
      KeptWrite(name: "", bytes: "a\u{0}b"), KeptWrite(name: "gone", bytes: nil),
      KeptWrite(name: "empty", bytes: ""), KeptWrite(name: "key", bytes: "x", isSecret: true),
    ]
    full.writes[0].files = files
    full.writes[2].files = []
    let first = try test.open().begin(script: "/s.lua", words: ["--fast", ""], on: loop)
    let seed = first.seed
    first.write(full)
    for number in 1...20 { first.write(makeRecord("op \(number)")) }
    first.close()
    #expect(first.failure == nil)

    let store = try test.open()
    #expect(try store.resume(nil, script: "/other.lua", on: loop) == nil)
    let second = try #require(try store.resume(nil, script: "/s.lua", on: loop))
    #expect(second.id == first.id && second.seed == seed && second.epoch == 2)
    #expect(second.records.map(\.path) == ["ship/UploadOp #7"] + (1...20).map { "op \($0)" })
    let read = try #require(second.records.first)
    #expect(read.label == "seven" && read.error == "" && read.place == "ship.lua:31")
    #expect(read.op == "UploadOp" && read.code == full.code && read.key == "k")
    #expect(read.inputs == full.inputs && read.reads == full.reads)
    #expect(read.state == .failed && read.attempt == 3 && read.isOnce)
    #expect(read.began == 1000.5 && read.ended == 1001)
    #expect(read.writes.map(\.name) == ["", "gone", "empty", "key"])
    #expect(try read.writes.map { try store.load($0) } == ["a\u{0}b", nil, "", "x"])
    #expect(read.writes.map(\.isSecret) == [false, false, false, true])
    #expect(read.writes.map(\.files) == [files, nil, [], nil])
    second.close()
  }

  @Test("A record that is written twice is the later one, at its place")
  func replacement() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let run = try store.begin(script: "/s.lua", words: [], on: loop)
    var record = makeRecord("a", bytes: nil)
    record.state = .started
    record.id = run.write(record)
    run.write(makeRecord("b"))
    record.state = .finished
    run.write(record)
    run.close()
    let records = try store.records(of: run.id)
    #expect(records.map(\.path) == ["a", "b"])
    #expect(records.first?.state == .finished)
  }

  @Test("What is written in one turn of the loop is one transaction")
  func oneTransaction() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let run = try test.open().begin(script: "/s.lua", words: [], on: loop)
    // The thread is ready from here on, and would take what comes early for itself.
    #expect(run.writeAndWait(makeRecord("first"), on: loop) == nil)
    var calls: [Int] = []
    for number in 0..<64 {
      loop.enqueue {
        run.write(makeRecord("op \(number)")) { error in
          #expect(error == nil)
          calls.append(number)
        }
      }
    }
    _ = loop.turn { calls.count == 64 }
    #expect(calls == Array(0..<64))
    #expect(run.transactions == 2)
    run.close()
  }

  @Test("A virtual clock waits for the disk")
  func virtualClock() throws {
    let test = try TestStore()
    let loop = FlowEventLoop(timedBy: VirtualClock())
    defer { loop.shutdown() }
    let run = try test.open().begin(script: "/s.lua", words: [], on: loop)
    var order: [String] = []
    loop.schedule(after: .seconds(1)) { order.append("timer") }
    run.write(makeRecord("op")) { _ in order.append("written") }
    loop.runUntilIdle()
    #expect(order == ["written", "timer"])
    run.close()
  }

  @Test("A run that ended finished isn't unfinished; one that ended otherwise is")
  func end() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let first = try store.begin(script: "/s.lua", words: ["x"], on: loop)
    first.end(.stopped)
    first.close()
    #expect(try store.unfinishedRun(of: "/s.lua") == first.id)
    // One that has failed is continued as well.
    let failing = try #require(try store.resume(nil, script: "/s.lua", on: loop))
    failing.end(.failed)
    failing.close()
    #expect(try store.unfinishedRun(of: "/s.lua") == first.id)
    guard case .failed = try store.run(first.id).state else {
      Issue.record("it hasn't failed")
      return
    }
    let second = try #require(try store.resume(nil, script: "/s.lua", on: loop))
    second.write(makeRecord("op"))
    second.end(.finished)
    second.close()
    #expect(try store.unfinishedRun(of: "/s.lua") == nil)
    #expect(try store.resume(nil, script: "/s.lua", on: loop) == nil)
    let summary = try store.run(first.id)
    #expect(summary.words == ["x"] && summary.finished == 1 && summary.epoch == 3)
    guard case .finished = summary.state else {
      Issue.record("\(summary.state)")
      return
    }
    // A finished run can be continued by its id.
    let third = try #require(try store.resume(first.id, script: "/s.lua", on: loop))
    #expect(third.records.count == 1)
    third.close()
  }

  @Test("The last finished record of a cache key is found in any run")
  func cache() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let key = Digest(high: 5, low: 6)
    var record = makeRecord("first")
    record.cacheKey = key
    var ids: [ByteString] = []
    for path in ["first", "second", "third"] as [ByteString] {
      let run = try store.begin(script: "/s.lua", words: [], on: loop)
      record.path = path
      record.state = path == "third" ? .failed : .finished
      run.write(record)
      run.write(makeRecord("other"))
      run.close()
      ids.append(run.id)
    }
    let found = try #require(try store.cached(key))
    #expect(found.run == ids[1] && found.record.path == "second")
    #expect(found.record.cacheKey == key)
    #expect(try store.cached(Digest(high: 6, low: 5)) == nil)
    try store.forget(ids[1])
    #expect(try store.cached(key)?.run == ids[0])
  }

  @Test("A large value is a file, which is checked when it is read")
  func largeValue() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let large = ByteString(Array(repeating: 7, count: 70_000))
    let small = ByteString(Array(repeating: 8, count: 64 << 10))
    let run = try store.begin(script: "/s.lua", words: [], on: loop)
    var record = makeRecord("op", bytes: large)
    record.writes.append(KeptWrite(name: "small", bytes: small))
    run.write(record)
    run.close()
    let writes = try #require(try store.records(of: run.id).first).writes
    guard case .file(let file) = writes[0].content, case .bytes = writes[1].content else {
      Issue.record("\(writes.map(\.name))")
      return
    }
    #expect(try store.load(writes[0]) == large)
    #expect(try store.load(writes[1]) == small)
    let path = test.folder + "/values/" + file.name
    try Files.write("changed", to: path, Cancellation())
    #expect(problem { _ = try store.load(writes[0]) } == .damaged)
    try FileRemoval.remove(path, recursive: false, Cancellation())
    #expect(problem { _ = try store.load(writes[0]) } == .missing)
    // No name in the database leads out of the folder.
    try Files.write("text", to: test.folder + "/outside", Cancellation())
    let outside = KeptFile(name: "../outside", size: 4, digest: try store.digest("text"))
    let write = KeptWrite(name: "x", content: .file(outside))
    #expect(problem { _ = try store.load(write) } == .damaged)
  }
}
