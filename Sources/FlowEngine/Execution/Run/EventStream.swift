internal import FlowLoop
internal import Synchronization

/// The events of a run as an asynchronous sequence; made by `Run.eventStream`.
///
/// It may be read on any thread, by one task at a time. It ends when the run has concluded,
/// or its loop is shut down.
///
/// ```swift
/// let stream = op.start(on: loop).eventStream(bufferingNewest: 1000)
/// for await event in stream { print(event.path, event.kind) }
/// ```
public struct EventStream: AsyncSequence, Sendable {
  private let stream: AsyncStream<RunEvent>
  private let counter: DropCounter

  /// Gets the events one after another.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var iterator: AsyncStream<RunEvent>.AsyncIterator

    public mutating func next(isolation actor: isolated (any Actor)?) async -> RunEvent? {
      await iterator.next(isolation: actor)
    }
  }

  /// How many events have been dropped so far, because they weren't read in time.
  public var droppedCount: Int { counter.count }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(iterator: stream.makeAsyncIterator())
  }

  fileprivate init(_ stream: AsyncStream<RunEvent>, _ counter: DropCounter) {
    self.stream = stream
    self.counter = counter
  }
}

extension Run {
  /// The events of the run, from the first one on, as they happen. Called on the loop's thread.
  ///
  /// The loop never waits for a reader: when `limit` events wait to be read, each further one replaces
  /// the oldest of them, which `EventStream.droppedCount` counts.
  ///
  /// - Parameter limit: The most events that wait to be read, at least 1.
  /// - Returns: The events; the stream of a run that has concluded ends after them.
  public func eventStream(bufferingNewest limit: Int = 10_000) -> EventStream {
    loop.checkThread()
    let counter = DropCounter()
    let (stream, continuation) = AsyncStream.makeStream(
      of: RunEvent.self, bufferingPolicy: .bufferingNewest(Swift.max(1, limit)))
    let source = EventSource(continuation, counter)
    for event in log.events { source.append(event, value: nil, in: log) }
    if reportsItsEnd { source.follow(self) } else { source.finish() }
    return EventStream(stream, counter)
  }
}

/// Counts events that were dropped, on any thread.
private final class DropCounter: Sendable {
  private let dropped = Atomic<Int>(0)

  var count: Int { dropped.load(ordering: .relaxed) }

  func increment() { dropped.add(1, ordering: .relaxed) }
}

/// Passes the events of a run to its stream.
private final class EventSource: StreamSource<RunEvent> {
  private let counter: DropCounter

  init(_ continuation: AsyncStream<RunEvent>.Continuation, _ counter: DropCounter) {
    self.counter = counter
    super.init(continuation)
  }

  override func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {
    switch continuation.yield(event) {
    case .dropped: counter.increment()
    // Its reader has stopped.
    case .terminated: finish()
    default: break
    }
  }
}

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
