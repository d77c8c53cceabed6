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
  public let name: String
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
