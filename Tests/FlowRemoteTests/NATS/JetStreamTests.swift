import FlowEngine
@testable import FlowRemote
import Testing

@Suite("JetStream")
struct JetStreamTests {
  @Test("is missing in a server without it, with a sentence")
  func noJetStream() throws {
    let it = try Fixture(TestServer(hasJetStream: false))
    let error = try it.error { try await it.jetStream.checkPresence() }
    #expect(
      error.message
        == "\(it.server.url): the server has no JetStream: start it with `nats-server -js`")
    let publish = try it.error { try await it.jetStream.publish("a", "x") }
    #expect(publish.message == "\(it.server.url): no stream takes messages of 'a'")
  }

  @Test("creates, changes, empties and deletes streams")
  func streams() throws {
    let it = try Fixture()
    try it.result { try await it.jetStream.checkPresence() }
    var settings = StreamSettings("S", subjects: ["s.>"])
    settings.maxAge = .seconds(60)
    let made = try it.result { try await it.jetStream.ensureStream(settings) }
    #expect(made.messages == 0)
    _ = try it.result { try await it.jetStream.ensureStream(settings) }
    for subject: ByteString in ["s.a", "s.a", "s.b"] {
      _ = try it.result { try await it.jetStream.publish(subject, "x") }
    }
    let full = try it.result { try await it.jetStream.streamInfo("S") }
    #expect(full.messages == 3 && full.lastSequence == 3)
    #expect(try it.result { try await it.jetStream.purge("S", subject: "s.a") } == 2)
    #expect(try it.result { try await it.jetStream.streamInfo("S") }.messages == 1)
    settings.isWorkQueue = true
    let fixed = try it.error { try await it.jetStream.ensureStream(settings) }
    #expect(fixed.message.hasSuffix("(nats_10052)"))
    _ = try it.result { try await it.jetStream.call("STREAM.DELETE.S") }
    let missing = try it.error { try await it.jetStream.streamInfo("S") }
    #expect(missing.message == "\(it.server.url): stream not found (nats_10059)")
    #expect(missing.jetStreamCode == JetStreamProblem.missingStream)
  }

  @Test("takes a stream that another program creates at the same time")
  func concurrentCreation() throws {
    let it = try Fixture()
    let other = StreamSettings("OTHER", subjects: ["s.>"])
    let settings = StreamSettings("S", subjects: ["s.>"])
    // The server refuses the subjects, as it does then.
    _ = try it.result { try await it.jetStream.ensureStream(other) }
    let refusal = try it.error { try await it.jetStream.ensureStream(settings) }
    #expect(refusal.message.hasSuffix("(nats_10065)"))
    _ = it.loop.scheduleOutside(after: .milliseconds(50)) {
      it.connection.perform {
        try await it.jetStream.call("STREAM.DELETE.OTHER")
        try await it.jetStream.call("STREAM.CREATE.S", settings.json)
      }
    }
    let found = try it.result { try await it.jetStream.ensureStream(settings) }
    #expect(found.messages == 0)
  }

  @Test("gives a stream that is there what it needs, and keeps what an administrator has changed")
  func changedSettings() throws {
    let it = try Fixture()
    func config() throws -> NATSJSON {
      let info = try it.result { try await it.jetStream.call("STREAM.INFO.S", nil) }
      return try #require(info["config"])
    }
    var settings = StreamSettings("S", subjects: ["s.>"])
    settings.maxAge = .seconds(60)
    // There are no servers for so many copies.
    settings.replicas = 3
    _ = try it.result { try await it.jetStream.ensureStream(settings) }
    #expect(try config()["num_replicas"]?.asInteger == 1)
    let changes: [NATSJSON.Member] = [
      NATSJSON.Member("max_bytes", .integer(Int64(1 << 20))),
      NATSJSON.Member("max_age", .integer(Int64(90_000_000_000))),
      NATSJSON.Member("description", .string("of the administrator")),
      NATSJSON.Member("subjects", .list([.string("other")])),
    ]
    let changed = try config().replacing(changes)
    _ = try it.result { try await it.jetStream.call("STREAM.UPDATE.S", changed) }
    settings.allowsRollup = true
    _ = try it.result { try await it.jetStream.ensureStream(settings) }
    let kept = try config()
    #expect(kept["max_bytes"]?.asInteger == 1 << 20)
    #expect(kept["max_age"]?.asInteger == 90_000_000_000)
    #expect(kept["description"]?.asBytes == "of the administrator")
    #expect(kept["subjects"] == .list([.string("s.>")]))
    #expect(kept["allow_rollup_hdrs"]?.asBool == true)
  }

  @Test("stores a message with an id once, and returns the last one of a subject")
  func messages() throws {
    let it = try Fixture()
    _ = try it.result {
      try await it.jetStream.ensureStream(StreamSettings("S", subjects: ["s.*"]))
    }
    let none = try it.result { try await it.jetStream.getLastMessage("S", "s.a") }
    #expect(none == nil)
    let numbers = try ["1", "2", "1"].map { (id: ByteString) in
      try it.result {
        try await it.jetStream.publish("s.a", id, id: id, headers: [NATSHeader("K", "v w")])
      }
    }
    #expect(numbers == [1, 2, 1])
    let last = try #require(try it.result { try await it.jetStream.getLastMessage("S", "s.a") })
    #expect(last.data == "2" && last.sequence == 2 && last.subject == "s.a")
    #expect(last.headers.contains(NATSHeader("Nats-Msg-Id", "2")))
    #expect(last.headers.contains(NATSHeader("K", "v w")))
    let stray = try it.error { try await it.jetStream.publish("elsewhere", "x") }
    #expect(stray.message == "\(it.server.url): no stream takes messages of 'elsewhere'")
  }

  @Test("reads both forms of the subject for acknowledgements, and nothing else")
  func acknowledgementSubjects() throws {
    let it = try Fixture(TestServer(hasJetStream: false))
    func read(_ reply: ByteString?) -> JetStreamMessage? {
      JetStreamMessage(
        NATSMessage(subject: "s", reply: reply, data: "", status: nil), it.connection)
    }
    for reply: ByteString in [
      "$JS.ACK.S.C.2.30.4.500.6", "$JS.ACK._.hash.S.C.2.30.4.500.6",
      "$JS.ACK.d.h.S.C.2.30.4.500.6.x",
    ] {
      let message = try #require(read(reply))
      #expect(message.stream == "S" && message.deliveries == 2)
      #expect(message.streamSequence == 30 && message.consumerSequence == 4)
      #expect(message.pending == 6)
    }
    for reply: ByteString? in [
      nil, "", "x", "$JS.ACK", "$JS.ACK.S.C.2.30.4.500", "$JS.ACK.S.C.2.30.4.500.6.7",
      "$JS.ACK.S.C.-2.30.4.500.6", "$JS.NAK.S.C.2.30.4.500.6", "$JS.ACK.S.C.2.30.4.x.6",
    ] {
      #expect(read(reply) == nil)
    }
  }
}

@Suite("A puller of a JetStream consumer")
struct PullerTests {
  /// A fixture with a work queue `Q` of the subject `q`, and a consumer `W`.
  private func makeQueue(ackWait: Duration = .seconds(30)) throws -> Fixture {
    let it = try Fixture()
    var settings = StreamSettings("Q", subjects: ["q"])
    settings.isWorkQueue = true
    _ = try it.result { try await it.jetStream.ensureStream(settings) }
    var consumer = ConsumerSettings("W")
    consumer.ackWait = ackWait
    consumer.maxAckPending = 1000
    _ = try it.result { try await it.jetStream.ensureConsumer("Q", consumer) }
    return it
  }

  private func add(_ count: Int, to it: Fixture, from first: Int = 0) throws {
    var stored = 0
    for number in first..<(first + count) {
      it.connection.perform({ try await it.jetStream.publish("q", "\(number)") }) { result in
        if result.error == nil { stored += 1 }
      }
    }
    it.wait { stored == count }
  }

  @Test("delivers as many messages as are demanded")
  func demand() throws {
    let it = try makeQueue()
    try add(50, to: it)
    var got: [JetStreamMessage] = []
    let puller = try JetStreamPuller(it.jetStream, stream: "Q", consumer: "W") {
      got.append($0)
    } fail: {
      Issue.record($0)
    }
    it.loop.runUntilIdle()
    #expect(got.isEmpty)
    puller.demand = 7
    it.wait { got.count == 7 }
    try it.flush()
    #expect(got.count == 7 && puller.demand == 0)
    #expect(got.map(\.data) == (0..<7).map { "\($0)" })
    #expect(got[6].streamSequence == 7 && got[6].pending == 43 && got[6].deliveries == 1)
    for message in got { message.tell(.done) }
    puller.demand = 100
    it.wait { got.count == 50 }
    _ = try it.result { try await it.connection.request(got[49].reply, "+ACK") }
    let info = try it.result { try await it.jetStream.consumerInfo("Q", "W") }
    #expect(info.pending == 0 && info.delivered == 50)
    #expect(try it.result { try await it.jetStream.streamInfo("Q") }.messages == 42)
    try add(10, to: it, from: 50)
    it.wait { got.count == 60 }
    puller.stop()
  }

  @Test("delivers many messages while its owner demands as much as it has handled")
  func throughput() throws {
    let it = try makeQueue()
    let count = 10_000
    try add(count, to: it)
    var got = 0
    var puller: JetStreamPuller?
    puller = try JetStreamPuller(it.jetStream, stream: "Q", consumer: "W") { message in
      got += 1
      message.tell(.done)
      puller?.demand += 1
    } fail: {
      Issue.record($0)
    }
    puller?.demand = 200
    it.wait { got == count }
    try it.flush()
    #expect(try it.result { try await it.jetStream.streamInfo("Q") }.messages == 0)
    #expect(got == count)
    puller?.stop()
    puller = nil
  }

  @Test(
    "gets a message again that isn't acknowledged in time, is refused, or not when its time is extended"
  )
  func redelivery() throws {
    let it = try makeQueue(ackWait: .milliseconds(400))
    try add(3, to: it)
    var got: [JetStreamMessage] = []
    let puller = try JetStreamPuller(it.jetStream, stream: "Q", consumer: "W") {
      got.append($0)
    } fail: {
      Issue.record($0)
    }
    puller.demand = 10
    it.wait { got.count == 3 }
    got[0].tell(.refused)
    got[1].tell(.dropped)
    it.wait { got.count == 4 }
    #expect(got[3].data == "0" && got[3].deliveries == 2)
    got[3].tell(.done)
    for _ in 0..<4 {
      got[2].tell(.inProgress)
      var isLater = false
      it.loop.schedule(after: .milliseconds(200)) { isLater = true }
      it.wait { isLater }
    }
    #expect(got.count == 4)
    it.wait { got.count == 5 }
    #expect(got[4].data == "2" && got[4].deliveries == 2)
    puller.stop()
  }

  @Test("continues after its server was killed and started again")
  func reconnect() throws {
    let it = try makeQueue()
    var got: [ByteString] = []
    let puller = try JetStreamPuller(it.jetStream, stream: "Q", consumer: "W") { message in
      got.append(message.data)
      message.tell(.done)
    } fail: {
      Issue.record($0)
    }
    puller.demand = 100
    try add(3, to: it)
    it.wait { got.count == 3 }
    try it.flush()
    it.server.kill()
    it.wait { !it.connection.isConnected }
    try it.server.start()
    it.wait { it.connection.isConnected }
    try add(3, to: it, from: 3)
    // If the server has lost the request, the puller notices that by the heartbeats that don't come: within 17.5 s.
    it.wait(seconds: 60) { got.count >= 6 }
    #expect(Set(got) == Set((0..<6).map { "\($0)" }))
    puller.stop()
  }

  @Test("asks again when a request expires")
  func expiry() throws {
    let it = try makeQueue()
    var got = 0
    let puller = try JetStreamPuller(
      it.jetStream, stream: "Q", consumer: "W", heartbeat: .milliseconds(100),
      expiry: .milliseconds(500)
    ) { _ in
      got += 1
    } fail: {
      Issue.record($0)
    }
    puller.demand = 2
    var isLater = false
    it.loop.schedule(after: .milliseconds(1500)) { isLater = true }
    it.wait { isLater }
    try add(3, to: it)
    it.wait { got == 2 }
    try it.flush()
    #expect(got == 2)
    puller.stop()
  }

  @Test("fails when its consumer is deleted, or was never there")
  func missingConsumer() throws {
    let it = try makeQueue()
    var errors: [FlowError] = []
    let deleted = try JetStreamPuller(
      it.jetStream, stream: "Q", consumer: "W", heartbeat: .milliseconds(200)
    ) { _ in
    } fail: {
      errors.append($0)
    }
    deleted.demand = 1
    try it.flush()
    try it.result { try await it.jetStream.deleteConsumer("Q", "W") }
    it.wait { errors.count == 1 }
    let missing = try JetStreamPuller(
      it.jetStream, stream: "Q", consumer: "none", heartbeat: .milliseconds(200)
    ) { _ in
    } fail: {
      errors.append($0)
    }
    missing.demand = 1
    it.wait { errors.count == 2 }
    #expect(
      errors.map(\.message)
        == Array(repeating: "\(it.server.url): consumer not found (nats_10014)", count: 2))
    #expect(errors.allSatisfy { $0.jetStreamCode == JetStreamProblem.missingConsumer })
    #expect(deleted.isStopped && missing.isStopped)
  }
}
