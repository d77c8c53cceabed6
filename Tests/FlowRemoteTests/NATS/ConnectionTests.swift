import CNats
import FlowEngine
import FlowRemote
import Testing

@Suite("A connection to a NATS server")
struct ConnectionTests {
  @Test("tells of its server")
  func server() throws {
    let it = try Fixture()
    #expect(it.connection.isConnected)
    #expect(it.connection.serverURL == it.server.url.description)
    #expect(it.connection.maxPayload == 1 << 20)
  }

  @Test("fails with a sentence where no server listens")
  func noServer() throws {
    let loop = FlowEventLoop(clock: SystemClock())
    let port = try TestServer.freePort()
    let error = try #require(try loop.connect("nats://127.0.0.1:\(port)").error)
    #expect(error.kind == .error)
    #expect(
      error.message
        == "nats://127.0.0.1:\(port): no server listens there (No server available for connection)")
    loop.shutdown()
  }

  @Test("fails with a sentence when the server refuses its token or user")
  func wrongToken() throws {
    let loop = FlowEventLoop(clock: SystemClock())
    let server = try TestServer(["--auth", "right"])
    let token = try #require(try loop.connect("nats://wrong@127.0.0.1:\(server.port)").error)
    #expect(token.message == "\(server.url) refused the token: Authorization Violation")
    let user = try #require(try loop.connect("nats://a:b@127.0.0.1:\(server.port)").error)
    #expect(user.message == "\(server.url) refused the user or password: Authorization Violation")
    let none = try #require(try loop.connect(server.url).error)
    #expect(none.message.hasPrefix("\(server.url) refused a connection without credentials"))
    let right = try loop.connect("nats://right@127.0.0.1:\(server.port)").get()
    right.close()
    loop.shutdown()
  }

  @Test("fails with a sentence when the server has no TLS")
  func tls() throws {
    let loop = FlowEventLoop(clock: SystemClock())
    let server = try TestServer(hasJetStream: false)
    let plain = try #require(try loop.connect("tls://127.0.0.1:\(server.port)").error)
    #expect(plain.message.hasPrefix("tls://127.0.0.1:\(server.port): the server has no TLS"))
    loop.shutdown()
  }

  @Test("passes messages with any bytes to subscribers")
  func messages() throws {
    let it = try Fixture()
    var got: [NATSMessage] = []
    let subscription = try it.connection.subscribe("a.*") { got.append($0) }
    try it.connection.publish("a.b", ByteString([0, 255, 10]), headers: [NATSHeader("K", "v w")])
    try it.connection.publish("a.c", "", reply: "r.s")
    try it.connection.publish("other", "x")
    it.wait { got.count == 2 }
    #expect(got[0].subject == "a.b")
    #expect(got[0].data == ByteString([0, 255, 10]))
    #expect(got[0].status == nil)
    #expect(got[0].reply == nil)
    #expect(got[1].reply == "r.s")
    subscription.unsubscribe()
    try it.connection.publish("a.b", "late")
    try it.flush()
    #expect(got.count == 2)
  }

  @Test("keeps the order of many messages")
  func manyMessages() throws {
    let it = try Fixture()
    var got: [ByteString] = []
    _ = try it.connection.subscribe("n") { got.append($0.data) }
    let sent = (0..<20_000).map { ByteString("\($0)") }
    for data in sent { try it.connection.publish("n", data) }
    it.wait { got.count == sent.count }
    #expect(got == sent)
  }

  @Test("refuses subjects, headers and sizes that can't be sent")
  func wrongMessages() throws {
    let it = try Fixture()
    for subject: ByteString in ["", "a b", "a..b", ".a", "a.", "a\nb", ByteString([0x61, 0])] {
      #expect(throws: FlowError.self) { try it.connection.publish(subject, "x") }
      #expect(throws: FlowError.self) { _ = try it.connection.subscribe(subject) { _ in } }
    }
    for header in [NATSHeader("", "v"), NATSHeader("k:", "v"), NATSHeader("k", "a\r\nb")] {
      #expect(throws: FlowError.self) { try it.connection.publish("s", "x", headers: [header]) }
    }
    let large = ByteString([UInt8](repeating: 0, count: (1 << 20) + 1))
    #expect(throws: FlowError.self) { try it.connection.publish("s", large) }
  }

  @Test("gets a reply to a request, and an error at once when nobody handles it")
  func requests() throws {
    let it = try Fixture()
    // Not `it`, which would never be released then.
    let connection = it.connection
    _ = try connection.subscribe("double") { message in
      guard let reply = message.reply else { return }
      try? connection.publish(reply, message.data + message.data)
    }
    let replies = try (0..<50).map { number in
      try it.result { try await it.connection.request("double", "\(number)") }
    }
    #expect(replies.map(\.data) == (0..<50).map { "\($0)\($0)" })
    let begin = it.loop.now()
    let error = try it.error { try await it.connection.request("nobody", "") }
    #expect(error.message == "\(it.server.url): nobody handles 'nobody' (no responders)")
    #expect(it.loop.now() - begin < 1_000_000_000)
  }

  @Test("gives up a request without a reply, which keeps the loop until then")
  func timeout() throws {
    let it = try Fixture()
    _ = try it.connection.subscribe("silent") { _ in }
    var result: Result<NATSMessage, FlowError>?
    it.connection.perform {
      try await it.connection.request("silent", "", timeout: .milliseconds(200))
    } then: {
      result = $0
    }
    it.loop.runUntilIdle()
    let error = try #require(result?.error)
    #expect(error.kind == .timeout)
    #expect(error.message == "\(it.server.url): no reply to 'silent' within 0.2s")
  }

  @Test("doesn't keep its loop from ending, and calls nothing after its end")
  func end() throws {
    let it = try Fixture()
    let connection = it.connection
    var count = 0
    _ = try connection.subscribe("s") { _ in
      count += 1
      if count == 3 { connection.close() }
    }
    it.loop.runUntilIdle()
    for _ in 0..<100 { try it.connection.publish("s", "x") }
    it.connection.perform({ try await it.connection.request("s", "x") }) { _ in
      Issue.record("a reply after the end")
    }
    it.wait { count == 3 }
    it.connection.close()
    it.loop.runUntilIdle()
    #expect(count == 3)
    #expect(!it.connection.isConnected)
    #expect(throws: FlowError.self) { try it.connection.publish("s", "x") }
    it.connection.perform({ try await it.connection.request("s", "x") }) { _ in
      Issue.record("a reply after the end")
    }
    it.loop.runUntilIdle()
  }

  @Test("sends what was published before it is closed")
  func lastMessages() throws {
    let it = try Fixture()
    var got = 0
    _ = try it.connection.subscribe("s") { _ in got += 1 }
    try it.flush()
    let other = try it.loop.connect(it.server.url).get()
    for _ in 0..<1000 { try other.publish("s", "x") }
    other.close()
    it.wait { got == 1000 }
  }

  @Test("connects again to a server that was killed, with its subscriptions")
  func reconnect() throws {
    let it = try Fixture()
    var events: [String] = []
    it.connection.onDisconnect = { events.append("lost") }
    it.connection.onReconnect = { events.append("back") }
    var got: [ByteString] = []
    _ = try it.connection.subscribe("s") { got.append($0.data) }
    it.server.kill()
    it.wait { events == ["lost"] }
    #expect(!it.connection.isConnected)
    #expect(it.connection.serverURL == nil)
    try it.connection.publish("s", "meanwhile")
    try it.server.start()
    it.wait { events == ["lost", "back"] }
    #expect(it.connection.isConnected)
    try it.connection.publish("s", "after")
    it.wait { got == ["meanwhile", "after"] }
  }

  @Test("is closed without a wait while its server is gone")
  func closeWithoutServer() throws {
    let it = try Fixture()
    it.server.kill()
    it.wait { !it.connection.isConnected }
    let begin = it.loop.now()
    it.connection.close()
    it.loop.runUntilIdle()
    #expect(it.loop.now() - begin < 1_500_000_000)
  }

  @Test("ends with its loop, at any time")
  func shutdown() throws {
    let server = try TestServer()
    for _ in 0..<5 {
      let loop = FlowEventLoop(clock: SystemClock())
      let connection = try loop.connect(server.url).get()
      _ = try connection.subscribe("s") { _ in }
      for _ in 0..<1000 { try connection.publish("s", "x") }
      loop.shutdown()
      #expect(connection.isClosed)
      let ended = FlowEventLoop(clock: SystemClock())
      let settings = try NATSSettings(server.url)
      ended.perform({ try await NATSConnection.connect(settings, on: ended) }) { _ in
        Issue.record("a result without a loop")
      }
      ended.shutdown()
    }
  }
}

extension Fixture {
  /// Waits until the server has handled all that was published, and its messages have come.
  func flush() throws {
    var isFlushed = false
    connection.perform({ try await self.connection.flush() }) { result in
      #expect(result.error == nil)
      isFlushed = true
    }
    wait { isFlushed }
  }
}
