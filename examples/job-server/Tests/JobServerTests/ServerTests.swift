import Foundation
import Glibc
import Testing

@testable import JobServer

/// A client that blocks: it is used on a thread of its own.
private final class Client {
  private let descriptor: Int32
  private var buffer: [UInt8] = []

  init(_ path: String) throws {
    descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let isConnected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) == 0 }
    }
    if !isConnected { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  deinit { close(descriptor) }

  /// A client of a server that may not listen yet.
  static func connected(_ path: String) throws -> Client {
    // The server starts when the pool has a thread for it, and other tests may keep all threads busy for long.
    for _ in 1...300_000 {
      if let client = try? Client(path) { return client }
      usleep(2000)
    }
    return try Client(path)
  }

  func send(_ line: String, end: String = "\n") {
    let bytes = Array((line + end).utf8)
    #expect(Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
  }

  /// Sends no more, but still reads.
  func endRequests() { _ = Glibc.shutdown(descriptor, Int32(SHUT_WR)) }

  /// The next reply; nil when the server has closed the connection.
  func reply() throws -> [String: Any]? {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffer.removeFirst(end + 1) }
        return try JSONSerialization.jsonObject(with: Data(buffer[..<end])) as? [String: Any]
      }
      var piece = [UInt8](repeating: 0, count: 4096)
      let count = recv(descriptor, &piece, piece.count, 0)
      if count <= 0 { return nil }
      buffer += piece.prefix(count)
    }
  }

  /// The next outcome of a job, after its events.
  func outcome() throws -> [String: Any]? {
    while let reply = try reply() { if reply["state"] != nil { return reply } }
    return nil
  }
}

@Suite("The server")
struct ServerTests {
  /// Runs a server, and a client on a thread of its own.
  private func serve(
    grace: Duration = .seconds(10), mostClients: Int = 100, mostRunning: Int = 16,
    _ client: @escaping @Sendable (Server, Client) throws -> Void
  ) async throws -> Server {
    let folder = FileManager.default.temporaryDirectory.path
    let server = Server(
      at: "\(folder)/jobs-\(UUID().uuidString)",
      Jobs(limits: .patient, mostRunning: mostRunning), grace: grace, mostClients: mostClients)
    async let end: Void = server.run()
    let result = await onThread { try client(server, try Client.connected(server.path)) }
    server.shutdown()
    try await end
    try result.get()
    #expect(access(server.path, F_OK) != 0)
    return server
  }

  @Test("A client sends jobs, and gets their events and outcomes")
  func jobs() async throws {
    _ = try await serve { _, client in
      client.send(
        #"{"run": "a", "script": "print((...).name) return {1, {x = true}}", "data": {"name": "Ada"}}"#
      )
      let start = try client.reply()
      #expect(start?["event"] as? String == "start")
      let printed = try client.reply()
      #expect(printed?["id"] as? String == "a")
      #expect(printed?["message"] as? String == "Ada\n")
      let outcome = try client.outcome()
      #expect(outcome?["state"] as? String == "succeeded")
      let result = outcome?["result"] as? [[Any]]
      #expect(result?.first?.first as? Int == 1)

      client.send(#"{"run": "b", "script": "error 'no luck'"}"#)
      let failure = try client.outcome()
      #expect(failure?["state"] as? String == "failed")
      #expect((failure?["error"] as? String)?.contains("b:1: no luck") == true)

      for line in ["nonsense", "{}", #"{"cancel": "none"}"#, #"{"run": "a b"}"#, #"{"run": ""}"#] {
        client.send(line)
        #expect(try client.outcome()?["state"] as? String == "refused")
      }
    }
  }

  @Test(
    "A result that isn't JSON, or too much of it, fails its job",
    arguments: [
      "return 0/0", "local t = {} for i = 1, 40 do t = {t, t} end return t",
      "local t = {} for i = 1, 40 do t = {a = t, b = t} end return t",
      "local t = {('x'):rep(1 << 19)} return {t, t, t}",
      "local t = {('x'):rep(1 << 19)} return t, t, t", "return ('\\\\1'):rep(1 << 19)",
    ])
  func unwritable(_ script: String) async throws {
    _ = try await serve { _, client in
      client.send(#"{"run": "a", "script": "\#(script)"}"#)
      let outcome = try client.outcome()
      #expect(outcome?["id"] as? String == "a")
      #expect(outcome?["state"] as? String == "failed")
      #expect(outcome?["error"] as? String == "the result isn't JSON of at most 1048576 bytes")
    }
  }

  @Test("Long texts of a script are shortened for its client")
  func longTexts() async throws {
    _ = try await serve { _, client in
      client.send(
        #"{"run": "a", "script": "local text = ('x'):rep(1 << 21) print(text) error(text)"}"#)
      _ = try client.reply()
      #expect((try client.reply()?["message"] as? String)?.count == 10_001)
      #expect((try client.outcome()?["error"] as? String)?.count == 10_001)
    }
  }

  @Test("The requests of a client take effect in their order")
  func order() async throws {
    _ = try await serve(mostRunning: 1) { _, client in
      // Each job is cancelled right after it was started, and started again under the same id.
      let wait = #"{"run": "a", "script": "require 'flow'.sleep(3600)"}"#
      client.send(#"{"run": "first", "script": "print() require 'flow'.sleep(3600)"}"#)
      while try client.reply()?["event"] as? String != "print" {}
      let lines = (1...200).map { wait + "\n" + #"{"cancel": "a", "reason": "\#($0)"}"# }
      client.send(lines.joined(separator: "\n"))
      for number in 1...200 {
        #expect(try client.outcome()?["error"] as? String == "cancelled: \(number)")
      }
    }
  }

  @Test("A client that sends no more gets its outcomes, and then the connection ends")
  func halfClosed() async throws {
    _ = try await serve { _, client in
      client.send(#"{"run": "a", "script": "require 'flow'.sleep(0.05) return 1"}"#)
      client.send(#"{"run": "b", "script": "return 2"}"#, end: "")
      client.endRequests()
      let outcomes = [try client.outcome(), try client.outcome()]
      #expect(Set(outcomes.map { $0?["id"] as? String }) == ["a", "b"])
      #expect(outcomes.allSatisfy { $0?["state"] as? String == "succeeded" })
      #expect(try client.reply() == nil)
    }
  }

  @Test("A request that is too long is refused, and those after it aren't")
  func longRequests() async throws {
    _ = try await serve { _, client in
      client.send(#"{"run": "a", "script": "\#(String(repeating: " ", count: 1 << 20))"}"#)
      let refusal = try client.reply()
      #expect(refusal?["error"] as? String == "a request has at most 1048576 bytes")
      client.send(#"{"run": "a", "script": "return 1"}"#)
      #expect(try client.outcome()?["state"] as? String == "succeeded")
    }
  }

  @Test("A client that doesn't read is cut off; the jobs of others continue meanwhile")
  func unread() async throws {
    _ = try await serve { server, client in
      let flood = """
        local line, flow = ('x'):rep(9000), require 'flow' \
        while true do print(line) flow.sleep(0) end
        """
      for number in 1...8 { client.send(#"{"run": "\#(number)", "script": "\#(flood)"}"#) }
      let other = try Client(server.path)
      for _ in 1...20 {
        other.send(#"{"run": "1", "script": "return 1"}"#)
        #expect(try other.outcome()?["state"] as? String == "succeeded")
      }
      for _ in 1...30_000 where server.jobs.count > 0 { usleep(2000) }
      #expect(server.jobs.count == 0)
    }
  }

  @Test("A client that is one too many is refused")
  func tooMany() async throws {
    _ = try await serve(mostClients: 1) { server, client in
      // The first is accepted before the second connects.
      client.send("{}")
      _ = try client.reply()
      let second = try Client(server.path)
      #expect(try second.reply()?["error"] as? String == "too many clients")
      #expect(try second.reply() == nil)
      client.send("{}")
      #expect(try client.reply() != nil)
    }
  }

  @Test("The socket of a crashed server is replaced, but no other file and no running server")
  func paths() async throws {
    let server = try await serve { server, _ in
      let second = Server(at: server.path)
      #expect(throws: POSIXError(.EADDRINUSE)) { try second.listen() }
    }
    #expect(FileManager.default.createFile(atPath: server.path, contents: Data("kept".utf8)))
    #expect(throws: POSIXError(.EADDRINUSE)) { try server.listen() }
    #expect(try String(contentsOfFile: server.path, encoding: .utf8) == "kept")
    unlink(server.path)
    // Nothing unlinks the socket of a process that is killed.
    close(try server.listen())
    close(try server.listen())
    unlink(server.path)
  }

  @Test("A client cancels its job by the id that it gave it")
  func cancellation() async throws {
    _ = try await serve { server, client in
      client.send(#"{"run": "a", "script": "print() require 'flow'.sleep(3600)"}"#)
      while try client.reply()?["event"] as? String != "print" {}
      let other = try Client(server.path)
      other.send(#"{"cancel": "a"}"#)
      #expect(try other.reply()?["error"] as? String == "there is no job 'a'")
      client.send(#"{"cancel": "a", "reason": "not needed"}"#)
      let outcome = try client.outcome()
      #expect(outcome?["state"] as? String == "cancelled")
      #expect(outcome?["error"] as? String == "cancelled: not needed")
    }
  }

  @Test("The jobs of a client that goes away are cancelled")
  func gone() async throws {
    let server = try await serve(grace: .seconds(3600)) { _, client in
      client.send(#"{"run": "a", "script": "print() require 'flow'.sleep(3600)"}"#)
      while try client.reply()?["event"] as? String != "print" {}
    }
    // Otherwise the shutdown would have waited for the job.
    #expect(server.jobs.count == 0)
  }

  @Test("A shutdown sends the outcomes of the last jobs, and closes the connections")
  func shutdown() async throws {
    _ = try await serve(grace: .milliseconds(20)) { server, client in
      client.send(#"{"run": "a", "script": "print() require 'flow'.sleep(3600)"}"#)
      while try client.reply()?["event"] as? String != "print" {}
      server.shutdown()
      let outcome = try client.outcome()
      #expect(outcome?["error"] as? String == "cancelled: the server is shutting down")
      #expect(try client.reply() == nil)
    }
  }

  @Test("The program runs the job of its page, and SIGTERM ends it")
  func program() async throws {
    let files = FileManager.default
    let socket = "\(files.temporaryDirectory.path)/jobs-\(UUID().uuidString)"
    let (program, output) = (Process(), Pipe())
    program.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
      .deletingLastPathComponent().appendingPathComponent("JobServer")
    program.arguments = [socket]
    program.standardError = output
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let script = try String(
      contentsOf: folder.appendingPathComponent("../../order.lua").standardizedFileURL,
      encoding: .utf8)
    let job: [String: Any] = [
      "run": "1", "script": script,
      "data": ["customer": "Ada", "lines": [["article": "apples", "amount": 3]]],
    ]
    let line = try JSONSerialization.data(withJSONObject: job)
    try program.run()
    // Standard error ends with the program.
    let result = await onThread {
      defer { program.terminate() }
      let client = try Client.connected(socket)
      client.send(String(decoding: line, as: UTF8.self))
      return try client.outcome().map { String(describing: $0["result"] ?? $0) } ?? "no outcome"
    }
    let log = await onThread {
      let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      program.waitUntilExit()
      return text
    }
    #expect(try result.get().contains("invoice 2010164945"))
    #expect(try log.get().hasSuffix("info ended\n"))
    #expect(program.terminationStatus == 0)
    #expect(!files.fileExists(atPath: socket))
  }
}

@Suite("Replies that wait for a client")
struct OutboxTests {
  @Test("Adding never waits: too much closes it")
  func limit() {
    let outbox = Outbox(limit: 10)
    #expect(outbox.add([1, 2, 3]))
    #expect(outbox.add([4]))
    #expect(outbox.take() == [1, 2, 3, 4])
    #expect(outbox.add(Array(repeating: 5, count: 10)))
    #expect(!outbox.add([6]))
    #expect(outbox.take() == nil)
    #expect(outbox.add([7]))
    #expect(outbox.take() == nil)
  }

  @Test("What was added before the end is taken")
  func end() async throws {
    let outbox = Outbox(limit: 10)
    let taken = Task.detached { await onThread { [outbox.take(), outbox.take()] } }
    #expect(outbox.add([1]))
    outbox.close()
    #expect(outbox.add([2]))
    #expect(try await taken.value.get() == [[1], nil])
  }
}

/// Does what blocks on a thread of its own.
private func onThread<Success: Sendable>(
  _ body: @escaping @Sendable () throws -> Success
) async -> Result<Success, any Error> {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: Result { try body() }) }
  }
}
