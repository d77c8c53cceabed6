import Dispatch
import Foundation
import Glibc

/// Accepts clients at a socket of the local machine. `run` and `shutdown` have the shape of ServiceLifecycle's
/// `Service`.
final class Server: Sendable {
  let jobs: Jobs
  let path: String
  private let grace: Duration
  private let mostClients: Int
  private let (stops, stop) = AsyncStream<Void>.makeStream()
  private let clients = Locked<(connections: [Int: Connection], areEnding: Bool)>(([:], false))
  /// The threads of clients.
  private let threads = DispatchGroup()

  /// Makes a server; `run` starts it.
  ///
  /// - Parameters:
  ///   - path: The path of its socket, at most 107 bytes.
  ///   - jobs: The jobs of its clients.
  ///   - grace: How long jobs may continue after `shutdown`.
  ///   - mostClients: The most clients at a time. Each has two threads, and up to 8 MiB of replies may wait for it.
  init(
    at path: String, _ jobs: Jobs = Jobs(), grace: Duration = .seconds(10), mostClients: Int = 100
  ) {
    self.path = path
    self.jobs = jobs
    self.grace = grace
    self.mostClients = mostClients
  }

  /// Serves until `shutdown` was called and all jobs have ended.
  func run() async throws {
    let listener = try listen()
    Thread.detachNewThread { self.accept(listener) }
    for await _ in stops {}
    // No new clients, then no new jobs; those that run may end, and their clients get the outcome.
    unlink(path)
    _ = Glibc.shutdown(listener, Int32(SHUT_RDWR))
    await jobs.shutdown(grace: grace)
    let connections = clients.withLock { clients in
      clients.areEnding = true
      return clients.connections.values
    }
    for connection in connections { connection.end() }
    // Nor does a client that reads slowly delay the end.
    let limit = Task {
      try await Task.sleep(for: .seconds(5))
      for connection in connections { connection.cutOff() }
    }
    await withCheckedContinuation { end in threads.notify(queue: .global()) { end.resume() } }
    limit.cancel()
  }

  /// Ends `run`, from any thread.
  func shutdown() { stop.finish() }

  /// Makes the socket.
  func listen() throws -> Int32 {
    guard path.utf8.count < 108 else { throw POSIXError(.ENAMETOOLONG) }
    if isStale { unlink(path) }
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let isBound = withAddress { bind(listener, $0, $1) == 0 }
    // Only for the user of the server.
    guard isBound, chmod(path, 0o600) == 0, Glibc.listen(listener, 64) == 0 else {
      let code = errno
      close(listener)
      throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO)
    }
    return listener
  }

  /// Whether the path is the socket of a server that has crashed. Another file is kept, and so is a server that runs.
  private var isStale: Bool {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return false }
    let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    let probe = socket(AF_UNIX, Int32(type), 0)
    defer { close(probe) }
    return withAddress { connect(probe, $0, $1) != 0 && errno == ECONNREFUSED }
  }

  private func withAddress<Result>(
    _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  /// Has a thread for each client, until the listener is shut down.
  private func accept(_ listener: Int32) {
    var number = 0
    while true {
      let socket = Glibc.accept(listener, nil, nil)
      if socket < 0 {
        // The listener is shut down.
        if errno == EINVAL { break }
        // The client has gone, or there are too many files.
        usleep(1000)
        continue
      }
      // Programs that this one starts don't get the socket.
      _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
      if clients.withLock({ $0.connections.count >= mostClients }) {
        let line = Reply(id: nil, .refused("too many clients")).line
        _ = Glibc.send(socket, line, line.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        close(socket)
        continue
      }
      number += 1
      let (key, connection) = (number, Connection(socket, number: number, jobs))
      let isLate = clients.withLock { clients in
        clients.connections[key] = connection
        return clients.areEnding
      }
      if isLate { connection.end() }
      threads.enter()
      Thread.detachNewThread {
        connection.serve()
        self.clients.withLock { $0.connections[key] = nil }
        self.threads.leave()
      }
    }
    close(listener)
  }
}
