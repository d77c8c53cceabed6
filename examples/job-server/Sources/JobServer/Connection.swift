import Dispatch
import FlowEngine
import Foundation
import Glibc

/// A client: it sends requests, a line each, and gets replies.
final class Connection: Sendable {
  private let jobs: Jobs
  private let number: Int
  /// The socket; nil once it is closed.
  private let socket: Locked<Int32?>
  /// The jobs whose outcome hasn't been sent.
  private let open = DispatchGroup()
  private static let longestLine = 1 << 20

  init(_ socket: Int32, number: Int, _ jobs: Jobs) {
    self.socket = Locked(socket)
    self.number = number
    self.jobs = jobs
    // A client that doesn't read its replies isn't waited for.
    var limit = timeval(tv_sec: 5, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  /// Reads requests until the client or the server closes the connection: on a thread that may block.
  func read() {
    guard let descriptor = socket.withLock({ $0 }) else { return }
    var (line, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
    while line.count <= Self.longestLine {
      let count = Glibc.recv(descriptor, &buffer, buffer.count, 0)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { break }
      for byte in buffer.prefix(count) {
        if byte != UInt8(ascii: "\n") {
          line.append(byte)
        } else {
          answer(line)
          line = []
        }
      }
    }
    // The jobs of a client that has gone end, too. At the end of the server none is left.
    Task { await jobs.cancelAll(of: prefix, reason: "the client has gone") }
    open.wait()
    socket.withLock { socket in
      Glibc.close(descriptor)
      socket = nil
    }
  }

  /// Reads no further requests: `read` ends when all outcomes are sent.
  func end() { socket.withLock { if let socket = $0 { _ = shutdown(socket, Int32(SHUT_RD)) } } }

  /// Different clients may use the same id.
  private var prefix: String { "\(number)/" }

  private func answer(_ line: [UInt8]) {
    do {
      let request = try Request(line)
      if let id = request.run {
        let data = (request.data ?? [:]).compactMapValues { PlainValue(flowValue: $0) }
        let job = Job(
          id: prefix + id, script: request.script ?? "", data: data,
          traceparent: request.traceparent)
        open.enter()
        Task {
          let outcome = await jobs.run(job) { self.send(Reply(id: id, $0)) }
          send(Reply(id: id, outcome))
          open.leave()
        }
      } else if let id = request.cancel {
        Task {
          if await jobs.cancel(prefix + id, reason: request.reason ?? "cancelled by the client") {
            return
          }
          send(Reply(id: id, .refused("there is no job '\(id)'")))
        }
      } else {
        send(Reply(id: nil, .refused("a request has 'run' or 'cancel'")))
      }
    } catch {
      send(Reply(id: nil, .refused("a request is an object in JSON")))
    }
  }

  /// Sends a line, from any thread.
  private func send(_ reply: Reply) {
    let line = reply.line
    socket.withLock { socket in
      guard let socket else { return }
      var sent = 0
      while sent < line.count {
        let count = line.withUnsafeBytes { bytes in
          Glibc.send(
            socket, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
        }
        if count < 0, errno == EINTR { continue }
        if count <= 0 {
          _ = shutdown(socket, Int32(SHUT_RDWR))
          return
        }
        sent += count
      }
    }
  }
}
