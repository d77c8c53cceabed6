/// The progress of a group, or of an op that reports it.
public struct Progress: Sendable, Equatable {
  /// The state of a group's items.
  public struct Items: Sendable, Equatable {
    /// How many are executing now.
    public var running: Int
    /// How many have failed.
    public var failed: Int

    /// Makes the state of a group's items.
    public init(running: Int, failed: Int) {
      self.running = running
      self.failed = failed
    }
  }

  /// The name of the enclosing run.
  public var run: ByteString
  /// The name of the op; for a group, of the op that it executes for each item.
  public var op: ByteString
  /// How much is done, in units of the op's own; in a group the number of items that have ended.
  public var done: Double
  /// The total; nil when that isn't known.
  public var total: Double?
  /// The items of a group; nil for an op.
  public var items: Items?

  /// Makes a progress; see the properties.
  public init(
    run: ByteString, op: ByteString, done: Double, total: Double?, items: Items? = nil
  ) {
    self.run = run
    self.op = op
    self.done = done
    self.total = total
    self.items = items
  }
}

/// An execution whose progress can be read, on its loop's thread.
public protocol ProgressSource: AnyObject {
  /// Its progress; nil after it has ended.
  var progress: Progress? { get }
}

/// Shows the progress of running ops and groups; called on the loop's thread.
///
/// It is notified of each change, and reads the progress when it wants to: there can be very many
/// changes.
public protocol ProgressMonitor: AnyObject {
  /// A source has started, progressed, or ended.
  func progressChanged(_ source: any ProgressSource)

  /// The loop has nothing to do and is about to wait.
  ///
  /// - Returns: The number of nanoseconds after which it wants to be called again if nothing
  ///   happens before; nil for not at all. Unlike a timer this keeps no loop running, and doesn't
  ///   advance a virtual clock.
  func loopRests() -> Int64?
}

/// The progress that an op has reported.
final class ReportedProgress: ProgressSource {
  private var current: Progress?
  private let monitor: any ProgressMonitor

  init(_ monitor: any ProgressMonitor) {
    self.monitor = monitor
  }

  var progress: Progress? { current }

  /// Stores the reported progress, or nil at the op's end.
  func update(_ progress: Progress?) {
    current = progress
    monitor.progressChanged(self)
  }
}
