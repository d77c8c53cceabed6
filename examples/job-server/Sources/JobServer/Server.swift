import Dispatch
import Foundation
import Glibc

/// Accepts clients at a socket of the local machine. `run` and `shutdown` have the shape of ServiceLifecycle's
/// `Service`.
final class Server: Sendable {
  let jobs: Jobs
  let path: String
  private let grace: Duration
  private let (stops, stop) = AsyncStream<Void>.makeStream()
  private let clients = Locked<(connections: [Int: Connection], areEnding: Bool)>(([:], false))
  /// The threads of clients.
  private let readers = DispatchGroup()

  /// Makes a server; `run` starts it.
  ///
  /// - Parameters:
  ///   - path: The path of its socket, at most 107 bytes.
  ///   - jobs: The jobs of its clients.
  ///   - grace: How long jobs may continue after `shutdown`.
  init(at path: String, _ jobs: Jobs = Jobs(), grace: Duration = .seconds(10)) {
    self.path = path
    self.jobs = jobs
    self.grace = grace
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
    await withCheckedContinuation { end in readers.notify(queue: .global()) { end.resume() } }
  }

  /// Ends `run`, from any thread.
  func shutdown() { stop.finish() }

  private func listen() throws -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let isCopied = withUnsafeMutableBytes(of: &address.sun_path) { room in
      let bytes = Array(path.utf8)
      room.copyBytes(from: bytes.prefix(room.count - 1))
      return bytes.count < room.count
    }
    guard isCopied else { throw POSIXError(.ENAMETOOLONG) }
    unlink(path)
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let isBound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) == 0 }
    }
    // Only for the user of the server.
    guard isBound, chmod(path, 0o600) == 0, Glibc.listen(listener, 64) == 0 else {
      let code = errno
      close(listener)
      throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO)
    }
    return listener
  }

  /// Has a thread for each client, until the listener is shut down.
  private func accept(_ listener: Int32) {
    var number = 0
    while true {
      let socket = Glibc.accept(listener, nil, nil)
      if socket < 0 {
        // The listener is shut down.
        if ![EINTR, ECONNABORTED, EMFILE, ENFILE].contains(errno) { break }
        // The client has gone, or there are too many files.
        usleep(1000)
        continue
      }
      number += 1
      let (key, connection) = (number, Connection(socket, number: number, jobs))
      let isLate = clients.withLock { clients in
        clients.connections[key] = connection
        return clients.areEnding
      }
      if isLate { connection.end() }
      readers.enter()
      Thread.detachNewThread {
        connection.read()
        self.clients.withLock { $0.connections[key] = nil }
        self.readers.leave()
      }
    }
    close(listener)
  }
}
