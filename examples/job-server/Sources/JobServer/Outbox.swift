import Dispatch

/// The lines that a client hasn't been sent yet. Any thread adds lines, and never waits for the client; one thread
/// takes them.
final class Outbox: Sendable {
  private struct State {
    var bytes: [UInt8] = []
    var isClosed = false
  }

  private let limit: Int
  private let state = Locked(State())
  /// Counts the calls that have something for the thread that takes.
  private let news = DispatchSemaphore(value: 0)

  /// - Parameter limit: The most bytes that wait.
  init(limit: Int) {
    self.limit = limit
  }

  /// Adds a line; after `close` it is dropped.
  ///
  /// - Returns: False if too many bytes wait, because the client doesn't read or isn't fast enough. The outbox is
  ///   closed and empty then.
  func add(_ line: [UInt8]) -> Bool {
    let hasRoom = state.withLock { state in
      if state.isClosed { return true }
      if state.bytes.count + line.count > limit {
        state = State(isClosed: true)
        return false
      }
      state.bytes += line
      return true
    }
    news.signal()
    return hasRoom
  }

  /// Ends `take` once it has returned all lines.
  func close() {
    state.withLock { $0.isClosed = true }
    news.signal()
  }

  /// Waits for lines, and returns all of them; nil once there are none and the outbox is closed.
  func take() -> [UInt8]? {
    while true {
      let (bytes, isClosed) = state.withLock { state in
        defer { state.bytes = [] }
        return (state.bytes, state.isClosed)
      }
      if !bytes.isEmpty { return bytes }
      if isClosed { return nil }
      news.wait()
    }
  }
}
