/// How far a group, or an op that tells of it, is.
public struct Progress: Sendable, Equatable {
  /// What a group's items do.
  public struct Items: Sendable, Equatable {
    /// How many execute now.
    public var running: Int
    /// How many have failed.
    public var failed: Int

    /// How many items are executing, and how many have failed.
    public init(running: Int, failed: Int) {
      self.running = running
      self.failed = failed
    }
  }

  /// The name of the run that it is part of.
  public var run: ByteString
  /// The name of the op; in a group of what it does for each item.
  public var op: ByteString
  /// How much is done, in units of the op's own; in a group the number of items that have ended.
  public var done: Double
  /// How much there is; nil when that isn't known.
  public var total: Double?
  /// Nil unless it is a group.
  public var items: Items?

  /// How far something is; see the properties.
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

/// Something whose progress can be looked at, on its loop's thread.
public protocol ProgressSource: AnyObject {
  /// How far it is; nil once it has ended.
  var progress: Progress? { get }
}

/// Shows how far things are while they go on; called on the loop's thread.
///
/// It is told that something has changed, and looks at it when it wants to: there can be very many
/// changes.
public protocol ProgressMonitor: AnyObject {
  /// A source has begun, gone on, or ended.
  func progressChanged(_ source: any ProgressSource)

  /// The loop has nothing to do and is about to wait.
  ///
  /// - Returns: In how many nanoseconds it wants to be asked again if nothing comes before; nil for not
  ///   at all. Unlike a timer this keeps no loop going, and moves no virtual clock.
  func loopRests() -> Int64?
}

/// What an op has told of its progress.
final class OpProgressNote: ProgressSource {
  private var current: Progress?
  private let monitor: any ProgressMonitor

  init(_ monitor: any ProgressMonitor) {
    self.monitor = monitor
  }

  var progress: Progress? { current }

  /// Takes what the op tells, or nil at its end.
  func update(_ progress: Progress?) {
    current = progress
    monitor.progressChanged(self)
  }
}
