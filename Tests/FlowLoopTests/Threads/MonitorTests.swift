import FlowLoop
import Glibc
import Testing

@Suite("A monitor")
struct MonitorTests {
  /// The number that two threads change.
  // Unchecked: the monitor guards it.
  private final class Counter: @unchecked Sendable {
    let monitor = Monitor()
    var count = 0
    var isDone = false
  }

  /// Runs `body` on another thread; the result waits for its end.
  private static func start(_ counter: Counter, _ body: @escaping @Sendable (Counter) -> Void) -> ()
    -> Void
  {
    let context = Unmanaged.passRetained(Work(counter, body))
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        let work = Unmanaged<Work>.fromOpaque(context).takeRetainedValue()
        work.body(work.counter)
        return nil
      }, context.toOpaque())
    #expect(result == 0)
    return { pthread_join(thread, nil) }
  }

  private final class Work {
    let counter: Counter
    let body: @Sendable (Counter) -> Void

    init(_ counter: Counter, _ body: @escaping @Sendable (Counter) -> Void) {
      self.counter = counter
      self.body = body
    }
  }

  @Test("excludes threads from each other")
  func exclusion() {
    let counter = Counter()
    let work: @Sendable (Counter) -> Void = { counter in
      for _ in 0..<10_000 { counter.monitor.locked { counter.count += 1 } }
    }
    let other = Self.start(counter, work)
    work(counter)
    other()
    #expect(counter.count == 20_000)
  }

  @Test("wakes a thread that waits, with and without a deadline", arguments: [true, false])
  func waking(hasDeadline: Bool) {
    let counter = Counter()
    let deadline = SystemClock().now() + 100_000_000_000
    let other = Self.start(counter) { counter in
      counter.monitor.locked {
        while !counter.isDone {
          if hasDeadline {
            let isBefore = counter.monitor.wait(until: deadline)
            #expect(isBefore)
          } else {
            counter.monitor.wait()
          }
        }
        counter.count = 1
      }
    }
    counter.monitor.locked {
      counter.isDone = true
      if hasDeadline { counter.monitor.signal() } else { counter.monitor.broadcast() }
    }
    other()
    #expect(counter.count == 1)
  }

  @Test("waits no longer than until a deadline")
  func deadline() {
    let monitor = Monitor()
    let deadline = SystemClock().now() + 2_000_000
    monitor.locked {
      while monitor.wait(until: deadline) {}
    }
    #expect(SystemClock().now() >= deadline)
    let isBefore = monitor.locked { monitor.wait(until: 0) }
    #expect(!isBefore)
  }
}
