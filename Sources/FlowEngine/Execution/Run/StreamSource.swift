internal import FlowLoop

extension Run {
  /// Whether sinks will get its end; not while they do, and not on a loop that is shut down.
  var reportsItsEnd: Bool { !loop.isShutDown && loop.engine.pending[id] === self }
}

/// Follows a run for an asynchronous sequence, until the run or its loop ends, or the reader stops.
///
/// Work that never ends may keep a run after its loop, so that the release of the run isn't what ends a sequence.
class StreamSource<Element: Sendable>: RunSink, LoopExtension {
  let continuation: AsyncStream<Element>.Continuation
  private(set) weak var run: Run?

  init(_ continuation: AsyncStream<Element>.Continuation) { self.continuation = continuation }

  deinit { continuation.finish() }

  /// Follows the run from now on.
  final func follow(_ run: Run) {
    self.run = run
    run.log.add(self)
    run.loop.extensions[ObjectIdentifier(self)] = self
  }

  /// Ends the sequence, and follows the run no more.
  final func finish() {
    continuation.finish()
    guard let run else { return }
    run.log.remove(self)
    run.loop.extensions[ObjectIdentifier(self)] = nil
  }

  final func loopIsShutDown() {
    continuation.finish()
    run?.log.remove(self)
  }

  func runBegan(_ run: Run) {}

  func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {}

  func runEnded(_ run: Run) { finish() }
}
