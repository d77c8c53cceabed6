internal import FlowSystem

/// The outcome of a write to the input of a program.
package enum InputWritten: Sendable {
  /// The bytes were written, or wait within a bound.
  case done
  /// The writer is called when the program has read enough.
  case later
  /// The program has closed its input, or has ended.
  case closed
}

/// A writer that waits until a program has read enough of its input.
package protocol ProcessInputWriter: AnyObject {
  /// Called once, on the loop's thread: the bytes were written or there is room for them, or the
  /// program has closed its input.
  func inputAdvanced(isOpen: Bool)
}

/// The bytes for a program's standard input, written as the program reads them.
final class ProcessInput: LoopJob {
  private unowned let loop: FlowEventLoop
  /// -1 before the program has been started, and after the end.
  private var descriptor: Int32 = -1
  private var bytes: [UInt8] = []
  /// How many of the bytes were written.
  private var written = 0
  private var waitingCount: Int { bytes.count - written }
  private var watch: DescriptorWatch?
  private var waiting: [any ProcessInputWriter] = []
  /// Whether writers wait until the program has read.
  var hasWriters: Bool { !waiting.isEmpty }
  private var isPaused = false
  /// Whether the input ends after the bytes that are waiting.
  private var endsAfterBytes: Bool
  private(set) var isClosed = false
  /// Called with the whole input at its end, for a program that isn't executed by the system.
  var onEnd: ((ByteString) -> Void)?
  private static let chunk = 1 << 16
  private static let writes = 16
  /// The number of bytes that may wait without their writer waiting too.
  static let bound = 1 << 16

  /// The whole input, or nil for one that is written in parts.
  init(_ bytes: ByteString?, on loop: FlowEventLoop) {
    self.loop = loop
    endsAfterBytes = bytes != nil
    self.bytes = bytes?.bytes ?? []
  }

  /// Begins to write to a program that was started.
  func begin(_ descriptor: Int32) throws(SystemError) {
    self.descriptor = descriptor
    try flush()
  }

  /// Adds bytes; `writer` is called when the program has to read before there is room for more.
  func write(_ bytes: ByteString, for writer: any ProcessInputWriter) -> InputWritten {
    if isClosed { return .closed }
    if written > Self.bound, written > waitingCount {
      self.bytes.removeFirst(written)
      written = 0
    }
    self.bytes += bytes.bytes
    if onEnd != nil { return .done }
    do { try flush() } catch { end() }
    if isClosed { return .closed }
    if waitingCount <= Self.bound { return .done }
    waiting.append(writer)
    return .later
  }

  /// Removes a writer that was to be called. Its bytes are still written.
  func cancel(_ writer: any ProcessInputWriter) {
    waiting.removeAll { $0 === writer }
  }

  /// Ends the input after the bytes that are waiting.
  func endAfterBytes() {
    endsAfterBytes = true
    if let onEnd = onEnd.take() {
      let all = ByteString(bytes)
      end()
      return onEnd(all)
    }
    do { try flush() } catch { end() }
  }

  /// Doesn't wait for the program, which itself waits for its output to be read.
  func pause() {
    isPaused = true
    stopWatching()
  }

  func resume() throws(SystemError) {
    guard isPaused else { return }
    isPaused = false
    try flush()
  }

  func run() {
    do { try flush() } catch { end() }
  }

  /// Writes as much as possible now, and watches for the time when more is.
  private func flush() throws(SystemError) {
    guard descriptor >= 0 else { return }
    for _ in 0..<Self.writes where waitingCount > 0 {
      let count = bytes.withUnsafeBytes { all in
        let part = UnsafeRawBufferPointer(rebasing: all[written...].prefix(Self.chunk))
        return flowsystem_write_quietly(descriptor, part.baseAddress, part.count)
      }
      if count > 0 {
        written += count
      } else if errno == EAGAIN || errno == EINTR {
        break
      } else {
        // A program may stop reading at any time.
        return end()
      }
    }
    if waitingCount == 0 {
      bytes = []
      written = 0
      stopWatching()
      if endsAfterBytes { return end() }
    } else if watch == nil, !isPaused {
      watch = try loop.watch(descriptor, writing: true, self)
    }
    if waitingCount <= Self.bound { callWriters(isOpen: true) }
  }

  private func stopWatching() {
    watch?.end()
    watch = nil
  }

  private func callWriters(isOpen: Bool) {
    let writers = waiting
    waiting = []
    for writer in writers { writer.inputAdvanced(isOpen: isOpen) }
  }

  /// Stops writing: the program sees the end of its input.
  func end() {
    stopWatching()
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
    let isComplete = waitingCount == 0
    bytes = []
    written = 0
    isClosed = true
    onEnd = nil
    callWriters(isOpen: isComplete)
  }

  /// Releases the writers without calling them, because their loop is being released.
  func abandon() {
    waiting = []
    end()
  }
}
