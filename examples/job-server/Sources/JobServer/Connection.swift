import Dispatch
import FlowEngine
import Foundation
import Glibc

/// A client: it sends requests, a line each, and gets replies.
///
/// It has two threads, which may block. One reads requests, and each takes effect before the next is read. The other
/// writes replies, so a client that doesn't read them delays no job and no other client.
final class Connection: Sendable {
  private let jobs: Jobs
  private let number: Int
  /// The socket; nil once it is closed.
  private let socket: Locked<Int32?>
  private let outbox = Outbox(limit: 4 << 20)
  /// The jobs whose outcome isn't in the outbox.
  private let open = DispatchGroup()

  init(_ socket: Int32, number: Int, _ jobs: Jobs) {
    self.socket = Locked(socket)
    self.number = number
    self.jobs = jobs
  }

  /// Serves the client until the client or the server ends the connection.
  func serve() {
    guard let descriptor = socket.withLock({ $0 }) else { return }
    let written = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      self.write(to: descriptor)
      written.signal()
    }
    read(from: descriptor)
    // A client that sends no more may still read: it gets the outcomes, and then the connection ends.
    open.notify(queue: .global()) { self.outbox.close() }
    waitForEnd(of: descriptor)
    jobs.cancelAll(of: prefix, reason: "the client has gone")
    written.wait()
    socket.withLock { socket in
      Glibc.close(descriptor)
      socket = nil
    }
  }

  /// Reads no further requests: `serve` returns when all outcomes are sent.
  func end() { shut(SHUT_RD) }

  /// Ends the connection at once.
  func cutOff() { shut(SHUT_RDWR) }

  private func shut(_ direction: Int) {
    socket.withLock { if let socket = $0 { _ = shutdown(socket, Int32(direction)) } }
  }

  /// Different clients may use the same id.
  private var prefix: String { "\(number)/" }

  // MARK: Requests

  /// Handles requests until the client sends no more.
  private func read(from descriptor: Int32) {
    var (line, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
    while true {
      let count = Glibc.recv(descriptor, &buffer, buffer.count, 0)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { break }
      for byte in buffer.prefix(count) {
        if byte == UInt8(ascii: "\n") {
          handle(line)
          line = []
        } else if line.count <= Request.longest {
          // The rest of a line that is too long is skipped.
          line.append(byte)
        }
      }
    }
    if !line.isEmpty { handle(line) }
  }

  private func handle(_ line: [UInt8]) {
    do throws(Refusal) {
      switch try Request(line) {
      case .run(let id, let script, let data, let traceparent):
        let job = Job(id: prefix + id, script: script, data: data, traceparent: traceparent)
        open.enter()
        jobs.start(job) { event in
          self.send(Reply(id: id, event))
        } end: { outcome in
          self.send(Reply(id: id, outcome))
          self.open.leave()
        }
      case .cancel(let id, let reason):
        if !jobs.cancel(prefix + id, reason: reason) {
          send(Reply(id: id, .refused("there is no job '\(id)'")))
        }
      }
    } catch {
      send(Reply(id: nil, .refused(error.reason)))
    }
  }

  // MARK: Replies

  /// Sends a line, from any thread.
  private func send(_ reply: Reply) {
    if !outbox.add(reply.line) { cutOff() }
  }

  /// Writes replies until the last one, or until the client takes none.
  private func write(to descriptor: Int32) {
    // A client that takes nothing for so long is cut off.
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    while let bytes = outbox.take(), isSent(bytes[...], to: descriptor) {}
    // This ends `read` and `waitForEnd`, too.
    cutOff()
  }

  private func isSent(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      if count <= 0 { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Waits until the client has closed its socket, or the server has shut this one down.
  private func waitForEnd(of descriptor: Int32) {
    var hangup = pollfd(fd: descriptor, events: 0, revents: 0)
    while poll(&hangup, 1, -1) < 0, errno == EINTR {}
  }
}
