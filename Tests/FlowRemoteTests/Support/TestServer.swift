import FlowEngine
import FlowRemote
import Glibc
import Testing

// Like a program that embeds this package: literals are strings.
typealias StringLiteralType = String
typealias ExtendedGraphemeClusterType = String
typealias UnicodeScalarType = String

/// A `nats-server` on a free port of 127.0.0.1 with a folder of its own, until it is released.
final class TestServer {
  private(set) var port = 0
  let folder: ByteString
  private let options: [String]
  private var process: pid_t = 0

  /// Starts a server; it has JetStream unless told otherwise.
  init(hasJetStream: Bool = true, _ options: [String] = []) throws {
    folder = try Folders.makeTemporary()
    self.options = options + (hasJetStream ? ["-js", "-sd", "\(folder)/store"] : [])
    // Another process may take a port between its choice and the start.
    for _ in 0..<20 {
      port = try TestServer.freePort()
      if try launch() { return }
      // One that still runs is only slow.
      if process > 0 { break }
    }
    recordNotReady()
  }

  deinit {
    kill()
    try? FileRemoval.remove(folder, recursive: true, Cancellation())
  }

  var url: ByteString { "nats://127.0.0.1:\(port)" }

  /// Starts it with the same port and folder, and waits until it takes connections.
  func start() throws {
    if try !launch() { recordNotReady() }
  }

  private var log: ByteString { "\(folder)/log" }

  /// Starts it; returns whether it was ready within a minute, and hasn't ended.
  private func launch() throws -> Bool {
    try? FileRemoval.remove(log, recursive: false, Cancellation())
    process = try TestServer.launch(
      ["nats-server", "-a", "127.0.0.1", "-p", "\(port)", "-l", "\(log)"] + options)
    for _ in 0..<6000 {
      // Its own word: another server may have the port.
      if readLog().contains("Server is ready" as ByteString) { return true }
      if waitpid(process, nil, WNOHANG) == process {
        process = 0
        return false
      }
      usleep(10_000)
    }
    return false
  }

  private func readLog() -> ByteString {
    (try? Files.read(log, Cancellation())) ?? ""
  }

  private func recordNotReady() {
    Issue.record("nats-server isn't ready at port \(port): \(readLog())")
  }

  /// Runs a program to its end, which has to be a success.
  static func run(_ arguments: [String]) throws {
    var status: Int32 = 0
    waitpid(try launch(arguments), &status, 0)
    try #require(status == 0)
  }

  private static func launch(_ arguments: [String]) throws -> pid_t {
    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    // The runner of the tests waits for all who have its output open.
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for descriptor: Int32 in 0...2 {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
    }
    var process: pid_t = 0
    try #require(posix_spawnp(&process, arguments[0], &actions, nil, &words, environ) == 0)
    return process
  }

  /// Ends it as a crash would.
  func kill() {
    guard process > 0 else { return }
    Glibc.kill(process, SIGKILL)
    waitpid(process, nil, 0)
    process = 0
  }

  private static func withAddress<Result>(
    _ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port)).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, size) }
    }
  }

  /// A port that nobody listens on, below those that the system gives to clients: a client that connects to such
  /// a port while its server is away may connect to itself, and then no server can have the port.
  static func freePort() throws -> Int {
    for _ in 0..<100 {
      let port = Int.random(in: 20_000..<32_000)
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(descriptor) }
      if withAddress(port, { bind(descriptor, $0, $1) }) == 0 { return port }
    }
    throw SystemError("no port is free")
  }
}

/// A server, a loop, and a connection between them, which ends with the test.
final class Fixture {
  let server: TestServer
  let loop = FlowEventLoop(clock: SystemClock())
  let connection: NATSConnection
  let jetStream: JetStream

  init(_ server: TestServer? = nil) throws {
    let server = try server ?? TestServer()
    self.server = server
    connection = try loop.connect(server.url).get()
    jetStream = JetStream(connection)
  }

  deinit {
    connection.close()
    loop.shutdown()
  }

  /// Turns the loop until `done` returns true; records an issue when that takes too long.
  func wait(
    seconds: Int = 20, until done: () -> Bool, at place: SourceLocation = #_sourceLocation
  ) {
    loop.wait(seconds: seconds, until: done, at: place)
  }

  /// The result of code on the loop.
  func result<Value>(
    at place: SourceLocation = #_sourceLocation, _ body: @escaping () async throws -> Value
  ) throws -> Value {
    try loop.result(at: place, body).get()
  }

  /// The error of code on the loop.
  func error<Value>(
    at place: SourceLocation = #_sourceLocation, _ body: @escaping () async throws -> Value
  ) throws -> FlowError {
    do throws(any Error) {
      _ = try result(at: place, body)
    } catch {
      return try #require(error as? FlowError, sourceLocation: place)
    }
    Issue.record("no error", sourceLocation: place)
    return .cancelled(reason: nil)
  }
}

extension FlowEventLoop {
  func wait(
    seconds: Int = 20, until done: () -> Bool, at place: SourceLocation = #_sourceLocation
  ) {
    var isLate = false
    let timer = schedule(after: .seconds(seconds)) { isLate = true }
    defer { timer.cancel() }
    _ = turn { done() || isLate }
    if !done() { Issue.record("nothing happened for \(seconds) s", sourceLocation: place) }
  }

  /// Connects, and waits until that has succeeded or failed.
  func connect(_ url: ByteString) throws -> Result<NATSConnection, FlowError> {
    try connect(NATSSettings(url))
  }

  func connect(_ settings: NATSSettings) throws -> Result<NATSConnection, FlowError> {
    try result { try await NATSConnection.connect(settings, on: self) }
  }

  /// The result of code on the loop.
  func result<Value>(
    at place: SourceLocation = #_sourceLocation, _ body: @escaping () async throws -> Value
  ) throws -> Result<Value, FlowError> {
    var result: Result<Value, FlowError>?
    perform(body) { result = $0 }
    wait(until: { result != nil }, at: place)
    return try #require(result, sourceLocation: place)
  }
}

extension Result where Failure == FlowError {
  var error: FlowError? {
    if case .failure(let error) = self { error } else { nil }
  }
}
