internal import FlowSystem

/// A few threads for work that would block a loop, shared by all loops of the process.
///
/// They are started when first needed, block all signals, and then stay: starting a thread costs
/// more than keeping it. Work that waits for another program, such as the writer of a pipe, stands aside:
/// a further thread takes its place until then.
// The monitor guards all properties that change.
package final class HelperThreads: @unchecked Sendable {
  /// For calls that block. Four: enough to keep a disk busy, few enough for any machine.
  package static let shared = HelperThreads(limit: 4)
  /// For code that computes: one for each core.
  package static let computing = HelperThreads(
    limit: max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))

  /// The threads to which the current one belongs; nil on any other thread.
  static var current: HelperThreads? {
    // Unretained: both live as long as the process.
    pthread_getspecific(ownKey).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
  }

  private static let ownKey: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key, nil)
    return key
  }()

  private let limit: Int
  private let monitor = Monitor()
  private var waiting: [@Sendable () -> Void] = []
  private var next = 0
  private var count = 0
  private var idle = 0
  /// The threads that stand aside.
  private var aside = 0
  /// Whether idle threads end.
  private var isRetiring = false

  private init(limit: Int) {
    self.limit = limit
  }

  /// Runs `work` on a thread, in the order of the calls.
  package func run(_ work: @escaping @Sendable () -> Void) {
    let needsThread = monitor.locked {
      waiting.append(work)
      monitor.signal()
      return takesThread()
    }
    if needsThread { startCountedThread() }
  }

  /// Performs a wait that may last for ever, as a part of work on a thread. Meanwhile the thread doesn't
  /// count, so other work doesn't wait for its end.
  package func standAside<Value, Failure: Error>(
    _ wait: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let needsThread = monitor.locked {
      aside += 1
      return takesThread()
    }
    if needsThread { startCountedThread() }
    defer { monitor.locked { aside -= 1 } }
    return try wait()
  }

  /// Counts a further thread if the work needs one, which the caller has to start. Called with the lock
  /// held.
  private func takesThread() -> Bool {
    guard idle < waiting.count - next, count - aside < limit else { return false }
    count += 1
    return true
  }

  /// Starts a thread that is counted already. Where the system gives none, and no other one takes work,
  /// the work runs here, slowly rather than never.
  private func startCountedThread() {
    if startThread() { return }
    let isTaken = monitor.locked {
      count -= 1
      return count - aside > 0
    }
    if isTaken { return }
    while let work = nextWork(waits: false) { work() }
  }

  private func startThread() -> Bool {
    let thread = try? SignalFreeThread.start { [self] in
      pthread_setspecific(Self.ownKey, Unmanaged.passUnretained(self).toOpaque())
      while let work = nextWork(waits: true) { work() }
    }
    return thread != nil
  }

  /// Ends the threads that have no work, and waits until they are about to exit. Further work starts new ones.
  package func retire() {
    monitor.locked {
      isRetiring = true
      monitor.broadcast()
      var now = timespec()
      clock_gettime(CLOCK_MONOTONIC, &now)
      // One that just takes work isn't waited for.
      let end = (Int64(now.tv_sec) + 1) * 1_000_000_000
      while idle > 0, monitor.wait(until: end) {}
      isRetiring = false
    }
  }

  private func nextWork(waits: Bool) -> (@Sendable () -> Void)? {
    monitor.locked {
      while next == waiting.count {
        if !waits { return nil }
        // It took the place of one that stood aside.
        if count - aside > limit || isRetiring {
          count -= 1
          if isRetiring { monitor.broadcast() }
          return nil
        }
        idle += 1
        monitor.wait()
        idle -= 1
      }
      let work = waiting[next]
      next += 1
      if next == waiting.count {
        waiting = []
        next = 0
      }
      return work
    }
  }
}

/// Threads off the event loop for code that computes, which a continuation names as its `thread`.
///
/// ```swift
/// let images = WorkQueue("images")
/// fetchImage().nextOnSuccess(.background) { image in scale(image) }
///   .nextOnSuccess(images) { image in save(image) }
/// ```
///
/// All queues share a few threads, one for each core. May be used from any thread.
// The monitor guards the properties that change.
public final class WorkQueue: @unchecked Sendable {
  /// Runs its work in parallel, in no particular order.
  public static let background = WorkQueue(name: "background", isSerial: false)

  /// The name, in errors and reports.
  package let name: String
  private let isSerial: Bool
  private let monitor = Monitor()
  private var waiting: [@Sendable () -> Void] = []
  private var isRunning = false

  private init(name: String, isSerial: Bool) {
    self.name = name
    self.isSerial = isSerial
  }

  /// Makes a serial queue: its work runs one piece after another, in the order in which it came.
  ///
  /// - Parameter name: The name, in errors and reports.
  public convenience init(_ name: String) { self.init(name: name, isSerial: true) }

  /// Runs `work` on a thread, soon.
  package func run(_ work: @escaping @Sendable () -> Void) {
    guard isSerial else { return HelperThreads.computing.run(work) }
    let isFirst = monitor.locked {
      waiting.append(work)
      defer { isRunning = true }
      return !isRunning
    }
    if isFirst { HelperThreads.computing.run { self.runAll() } }
  }

  /// Runs what is waiting, and again what came meanwhile; other queues have their turn in between.
  private func runAll() {
    let ready = monitor.locked {
      defer { waiting = [] }
      return waiting
    }
    for work in ready { work() }
    let hasMore = monitor.locked {
      isRunning = !waiting.isEmpty
      return isRunning
    }
    if hasMore { HelperThreads.computing.run { self.runAll() } }
  }
}
