internal import FlowEngine
internal import FlowScripting
internal import FlowSystem

/// Writes the page of `--timeline` again and again while the script executes.
///
/// A timer of the loop reads the logs between two jobs. Another thread makes the page of that and writes it, as
/// that takes longer, and a disk may be slow. A page that can't be written is no failure: the last one, which is
/// written at the end, reports it.
final class LivePage {
  /// The source of a page.
  struct Source {
    /// The number of records.
    let size: () -> Int
    /// Whether a run is open.
    let isRunning: () -> Bool
    /// Reads the logs, and returns what makes the page, on any thread. The page will be written again after this
    /// time in nanoseconds.
    let page: (Int64) -> @Sendable () -> ByteString
  }

  private let path: ByteString
  /// Not retained: pages are made only as long as it exists.
  private weak var loop: FlowEventLoop?
  private let source: Source
  private let target = Target()
  private var pace = LivePace()
  private var timer: LoopTimer?

  /// Begins; nothing is written before the first run.
  init(_ path: ByteString, on loop: FlowEventLoop, _ source: Source) {
    self.path = path
    self.loop = loop
    self.source = source
    wait()
  }

  /// Ends it: after the call the file isn't written any more.
  func end() {
    timer?.cancel()
    timer = nil
    target.isFinal.withLock { $0 = true }
  }

  private func wait() {
    timer = loop?.scheduleAside(after: .nanoseconds(pace.interval)) { [weak self] in
      self?.write()
    }
  }

  private func write() {
    let begin = SystemClock().now()
    let size = source.size()
    guard pace.isDue(at: begin, size: size, isRunning: source.isRunning()) else {
      wait()
      return
    }
    let makePage = source.page(max(pace.interval, LivePace.shortest))
    loop?.offload { [path, target] in
      if target.isFinal.withLock({ $0 }) { return begin }
      let page = makePage()
      // The disk's time isn't a processor's.
      let end = SystemClock().now()
      target.isFinal.withLock { isFinal in
        guard !isFinal else { return }
        do throws(SystemError) {
          try Files.write(page, to: path, Cancellation())
        } catch {
          // See above: the last page reports it. A file that can't be replaced, such as a pipe, gets only that one.
          isFinal = error.code == EINVAL
        }
      }
      return end
    } then: { [weak self] end in
      self?.pace.made(from: begin, to: end, size: size)
      self?.wait()
    }
  }
}

extension LivePage {
  /// The state of the file that both threads know.
  private final class Target: Sendable {
    /// Whether no further page may be written. Held while one is written.
    let isFinal = Locked(false)
  }
}
