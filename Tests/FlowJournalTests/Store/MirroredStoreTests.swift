import FlowEngine
@testable import FlowJournal
import FlowLoop
import FlowSystem
import Testing

/// A server that keeps runs, in memory; connections are made by several threads.
private final class MemoryServer: Sendable {
  struct Content {
    var key: [UInt8]?
    var last: UInt64 = 0
    var messages: [MirroredRun: [(sequence: UInt64, bytes: [UInt8])]] = [:]
    var living: Set<MirroredRun> = []
    var isAway = false
    /// Whether the last message of a run isn't sent.
    var hidesLast = false
  }

  let content = Locked(Content())

  func mirror(of script: ByteString = "s.lua") -> RunMirror {
    RunMirror(script: script) { [self] () throws(FlowError) in MemoryConnection(self) }
  }

  func messages(of id: ByteString) -> [[UInt8]] {
    content.withLock { content in
      content.messages.first { $0.key.id == id }?.value.map(\.bytes) ?? []
    }
  }
}

private final class MemoryConnection: MirrorConnection {
  private let server: MemoryServer

  init(_ server: MemoryServer) { self.server = server }

  var place: ByteString { "memory" }

  func hashKey(orElse own: [UInt8]) -> [UInt8] {
    server.content.withLock { content in
      let key = content.key ?? own
      content.key = key
      return key
    }
  }

  func publish(
    _ bytes: [UInt8], of run: MirroredRun, after last: UInt64, isLast: () -> Bool
  ) throws(FlowError) -> MirrorReply {
    let reply = server.content.withLock { content -> MirrorReply? in
      if content.isAway { return nil }
      let present = content.messages[run]?.last
      guard (present?.sequence ?? 0) == last else {
        return .outdated(present.map { MirroredBytes(sequence: $0.sequence, bytes: $0.bytes) })
      }
      content.last += 1
      content.messages[run, default: []].append((content.last, bytes))
      return .stored(content.last)
    }
    guard let reply else { throw FlowError(.error, "the server is away") }
    return reply
  }

  func beat(_ run: MirroredRun) {}

  func living(_ runs: [MirroredRun]) -> Set<MirroredRun> {
    server.content.withLock { $0.living.intersection(runs) }
  }

  func runs(of script: ByteString?) -> [(run: MirroredRun, last: MirroredBytes)] {
    server.content.withLock { content in
      content.messages.compactMap { run, messages in
        guard script == nil || run.script == script, let last = messages.last else { return nil }
        return (run, MirroredBytes(sequence: last.sequence, bytes: last.bytes))
      }
    }
  }

  func hasUnreadableRuns(of script: ByteString) -> Bool { false }

  func last(of run: MirroredRun) -> MirroredBytes? {
    server.content.withLock { $0.messages[run]?.last }.map {
      MirroredBytes(sequence: $0.sequence, bytes: $0.bytes)
    }
  }

  func read(
    _ run: MirroredRun, after first: UInt64, upTo last: UInt64,
    _ body: (MirroredBytes) throws(FlowError) -> Void
  ) throws(FlowError) {
    let (messages, hidesLast) = server.content.withLock { ($0.messages[run] ?? [], $0.hidesLast) }
    for message in hidesLast ? messages.dropLast() : messages[...]
    where message.sequence > first && message.sequence <= last {
      try body(MirroredBytes(sequence: message.sequence, bytes: message.bytes))
    }
  }

  func remove(_ run: MirroredRun) { server.content.withLock { $0.messages[run] = nil } }

  func close() {}
}

@Suite("A store whose runs a server keeps as well")
struct MirroredStoreTests {
  @Test("Another store continues with all records, large values among them")
  func elsewhere() throws {
    let (server, first, second) = (MemoryServer(), try TestStore(), try TestStore())
    let loop = makeLoop()
    defer { loop.shutdown() }
    let large = ByteString([UInt8](repeating: 7, count: 100_000))
    let run = try MirroredStore(server.mirror(), in: first.folder).begin(words: ["-x"], on: loop)
    #expect(run.writeAndWait(makeRecord("small"), on: loop) == nil)
    #expect(run.writeAndWait(makeRecord("large", bytes: large), on: loop) == nil)
    run.close()

    let copy = try MirroredStore(server.mirror(), in: second.folder)
    let other = try #require(try copy.resume(nil, on: loop))
    #expect(other.id == run.id && other.seed == run.seed && other.epoch == 2)
    #expect(other.records.map(\.path) == ["small", "large"])
    #expect(try copy.store.load(other.records[1].writes[0]) == large)
    #expect(try copy.store.run(run.id).words == ["-x"])
    // The record of another process, whose value is in a file of this store.
    var undone = other.records[1]
    undone.state = .undone
    #expect(other.writeAndWait(undone, on: loop) == nil)
    other.end(.finished)
    other.close()
    #expect(copy.store.verify().isEmpty)

    let back = try MirroredStore(server.mirror(), in: first.folder)
    #expect(try back.resume(nil, on: loop) == nil)
    try back.fetchAll(ofAllScripts: false)
    #expect(try back.store.records(of: run.id).map(\.state) == [.finished, .undone])
    #expect(try back.store.load(back.store.records(of: run.id)[1].writes[0]) == large)
    #expect(back.store.verify().isEmpty)
  }

  @Test(
    "A message that the server has, and the store hasn't, is in the store after the next resume")
  func ahead() throws {
    let (server, test) = (MemoryServer(), try TestStore())
    let loop = makeLoop()
    defer { loop.shutdown() }
    let run = try MirroredStore(server.mirror(), in: test.folder).begin(words: [], on: loop)
    run.close()
    // As if the process had been killed between both.
    var message = MirrorMessage(.left, epoch: 1, first: 1)
    message.records = [makeRecord("late")]
    message.records[0].id = 1
    let last = try #require(server.content.withLock { $0.messages.values.first?.last?.sequence })
    let reply = try MemoryConnection(server).publish(
      message.bytes, of: MirroredRun(script: "s.lua", id: run.id), after: last, isLast: { true })
    guard case .stored = reply else {
      Issue.record("not stored")
      return
    }
    let copy = try MirroredStore(server.mirror(), in: test.folder)
    let next = try #require(try copy.resume(nil, on: loop))
    #expect(next.records.map(\.path) == ["late"])
    next.close()
  }

  @Test("A process whose run another one has continued writes nothing more, here or there")
  func fenced() throws {
    let (server, first, second) = (MemoryServer(), try TestStore(), try TestStore())
    let loop = makeLoop()
    defer { loop.shutdown() }
    let copy = try MirroredStore(server.mirror(), in: first.folder)
    let run = try copy.begin(words: [], on: loop)
    #expect(run.writeAndWait(makeRecord("a"), on: loop) == nil)
    let other = try #require(
      try MirroredStore(server.mirror(), in: second.folder).resume(run.id, on: loop))
    let count = server.messages(of: run.id).count
    #expect(run.writeAndWait(makeRecord("b"), on: loop)?.storeProblem == .fenced)
    run.close()
    #expect(server.messages(of: run.id).count == count)
    #expect(try copy.store.records(of: run.id).map(\.path) == ["a"])
    // The run was removed.
    let mirrored = MirroredRun(script: "s.lua", id: run.id)
    server.content.withLock { $0.messages[mirrored] = nil }
    let error = try #require(other.writeAndWait(makeRecord("c"), on: loop))
    #expect(error.storeProblem == .fenced && error.message.contains("was removed from the server"))
    other.close()
  }

  @Test("A run that a process is heard to execute is neither continued nor removed")
  func living() throws {
    let (server, first, second) = (MemoryServer(), try TestStore(), try TestStore())
    let loop = makeLoop()
    defer { loop.shutdown() }
    let run = try MirroredStore(server.mirror(), in: first.folder).begin(words: [], on: loop)
    let mirrored = MirroredRun(script: "s.lua", id: run.id)
    server.content.withLock { $0.living = [mirrored] }
    let copy = try MirroredStore(server.mirror(), in: second.folder)
    #expect(problem { _ = try copy.resume(nil, on: loop) } == .held)
    #expect(problem { try copy.forget(run.id) } == .held)
    #expect(try copy.forget(olderThan: -1).isEmpty)
    run.close()
    server.content.withLock { $0.living = [] }
    #expect(try copy.forget(olderThan: -1) == [run.id])
    #expect(server.messages(of: run.id).isEmpty)
    #expect(problem { _ = try copy.resume(run.id, on: loop) } == .missing)
  }

  @Test("Nothing is in the store that the server doesn't have")
  func away() throws {
    let (server, test) = (MemoryServer(), try TestStore())
    let loop = makeLoop()
    defer { loop.shutdown() }
    let copy = try MirroredStore(server.mirror(), in: test.folder)
    let run = try copy.begin(words: [], on: loop)
    server.content.withLock { $0.isAway = true }
    let error = try #require(run.writeAndWait(makeRecord("a"), on: loop))
    #expect(error.message.contains("can't keep run \(run.id) on the server: the server is away"))
    run.close()
    #expect(try copy.store.records(of: run.id).isEmpty)
  }

  @Test("Old finished runs are removed from the server, but not the last ones")
  func pruning() throws {
    let (server, test) = (MemoryServer(), try TestStore())
    let loop = makeLoop()
    defer { loop.shutdown() }
    let connection = MemoryConnection(server)
    for number in 1...25 {
      let run = MirroredRun(script: "s.lua", id: "r\(number)")
      // The first three haven't finished.
      var message = MirrorMessage(
        number <= 3 ? .left : .finished, epoch: 1, first: 0,
        head: MirrorMessage.Head(words: [], seed: 1, began: 1))
      message.time = number == 3 ? WallClock.now() : 1000
      _ = try connection.publish(message.bytes, of: run, after: 0, isLast: { true })
    }
    let copy = try MirroredStore(server.mirror(), in: test.folder)
    try copy.prune(sparing: "r1")
    let left = connection.runs(of: "s.lua").map(\.run.id).sorted { $0.description < $1.description }
    let expected = (Array(1...3) + Array(6...25)).map { ByteString("r\($0)") }
    #expect(left == expected.sorted { $0.description < $1.description })
  }

  @Test("What others write on the server leads to no other folder, ends nothing, and hides no run")
  func hostile() throws {
    let (server, first, second) = (MemoryServer(), try TestStore(), try TestStore())
    let loop = makeLoop()
    defer { loop.shutdown() }
    let connection = MemoryConnection(server)
    let run = try MirroredStore(server.mirror(), in: first.folder).begin(words: [], on: loop)
    run.close()
    let head = MirrorMessage.Head(words: [], seed: 1, began: 1)
    for id: ByteString in ["../../elsewhere", "", ".", "r/1", "R1"] {
      _ = try connection.publish(
        MirrorMessage(.left, epoch: 1, first: 0, head: head).bytes,
        of: MirroredRun(script: "s.lua", id: id), after: 0, isLast: { true })
    }
    _ = try connection.publish(
      [1, 2, 3], of: MirroredRun(script: "s.lua", id: "garbage"), after: 0, isLast: { true })
    let copy = try MirroredStore(server.mirror(), in: second.folder)
    try copy.fetchAll(ofAllScripts: true)
    #expect(try copy.runs(ofAllScripts: true).map(\.id) == [run.id])
    try copy.prune(sparing: run.id)

    // A number that is none of the run's records.
    var record = makeRecord("a")
    record.id = .max
    let bad = MirroredRun(script: "s.lua", id: "bad1")
    _ = try connection.publish(
      MirrorMessage(.left, epoch: 1, first: 0, head: head, records: [record]).bytes, of: bad,
      after: 0, isLast: { true })
    #expect(problem { _ = try copy.resume("bad1", on: loop) } == .damaged)
    #expect(problem { try ValueFiles.remove("../x", in: second.folder) } == .damaged)
  }

  @Test("A run of which the server doesn't send everything isn't continued")
  func gap() throws {
    let (server, first, second) = (MemoryServer(), try TestStore(), try TestStore())
    let loop = makeLoop()
    defer { loop.shutdown() }
    let run = try MirroredStore(server.mirror(), in: first.folder).begin(words: [], on: loop)
    #expect(run.writeAndWait(makeRecord("a"), on: loop) == nil)
    run.close()
    server.content.withLock { $0.hidesLast = true }
    let copy = try MirroredStore(server.mirror(), in: second.folder)
    #expect(problem { _ = try copy.resume(nil, on: loop) } == .other)
    server.content.withLock { $0.hidesLast = false }
    #expect(try copy.resume(nil, on: loop)?.records.map(\.path) == ["a"])
  }

  @Test("A message is read as it was written; a part of it isn't one")
  func messages() throws {
    var record = makeRecord("a/b")
    (record.label, record.error, record.place) = ("l", "", nil)
    record.cacheKey = Digest(high: 5, low: 6)
    record.isOnce = true
    record.id = 1 << 39
    let message = MirrorMessage(
      .held, epoch: 3, first: 7,
      head: MirrorMessage.Head(words: ["", "w"], seed: .min, began: 1.5), records: [record])
    let bytes = message.bytes
    let read = try #require(MirrorMessage(bytes))
    #expect(read.state == .held && read.epoch == 3 && read.first == 7 && read.time == message.time)
    #expect(read.holder == .current && read.head?.words == ["", "w"] && read.head?.seed == .min)
    let back = try #require(read.records.first)
    #expect(back.id == record.id && back.label == "l" && back.error == "" && back.place == nil)
    #expect(back.cacheKey == record.cacheKey && back.isOnce && back.path == "a/b")
    for count in bytes.indices { #expect(MirrorMessage(Array(bytes[..<count])) == nil) }
    #expect(MirrorMessage(bytes + [0]) == nil)
  }
}
