internal import Glibc
import Synchronization

/// A thread of its own with an event loop, for programs whose own threads mustn't wait.
///
/// ```swift
/// let thread = try LoopThread(name: "uploads")
/// let url = try await thread.perform { loop in
///   try await makeUploadFlow().start(on: loop).value.string("url")
/// }
/// await thread.shutdown()
/// ```
///
/// Its owner shuts it down. If the last reference to it is released before that, it shuts down by
/// itself, and nobody waits for it. All its methods may be called on any thread; a loop and everything on
/// it is only used within `run`, `perform` and actors on the thread (`FlowActor`).
///
/// Runs that wait for nothing aren't failed as stalled here, because another thread may still continue
/// them; a shutdown cancels them.
public final class LoopThread: Sendable {
  /// How long work may last after the request to shut down, by default.
  public static let defaultGrace: Duration = .seconds(30)

  package let core: LoopThreadCore

  /// The name of the thread, in errors and for the system, which shows its first 15 bytes.
  public var name: String { core.name }
  /// The way for other threads to pass work to the loop.
  public let mailbox: Mailbox
  /// Runs the code of actors on the thread; see `FlowActor`.
  public let executor: LoopExecutor

  /// Starts the thread, and returns when its loop exists.
  ///
  /// - Parameters:
  ///   - name: The name of the thread.
  ///   - makeLoop: Makes the loop, on the thread.
  /// - Throws: A `SystemError` if the system gives no thread, or no descriptor to wake the loop.
  package init(
    name: String, makingLoop makeLoop: @escaping @Sendable () -> EventLoop
  ) throws(SystemError) {
    core = LoopThreadCore(name)
    (mailbox, executor) = try core.start(makeLoop)
  }

  deinit { core.beginShutdown(grace: Self.defaultGrace) }

  /// Whether the calling code runs on the thread.
  public var isCurrent: Bool { core.isCurrent }

  /// Whether a shutdown has begun: the thread takes no new work.
  public var isShuttingDown: Bool { core.phase != .running }

  /// Runs `work` on the thread, soon, in the order of the calls; returns at once.
  ///
  /// - Returns: Whether the thread takes the work: not after a shutdown has begun. What was taken shortly
  ///   before may still be dropped by the end of the thread.
  @discardableResult
  public func run(_ work: @escaping @Sendable (EventLoop) -> Void) -> Bool {
    core.phase == .running && mailbox.postIfOpen(work)
  }

  /// Calls `work` on the thread at its end, when everything else has ended or was abandoned: the last one
  /// first. For what lives on the loop and has to be closed there.
  ///
  /// - Returns: Whether it will be called: not if the thread has already come to its end.
  @discardableResult
  public func atEnd(_ work: @escaping @Sendable (EventLoop) -> Void) -> Bool {
    core.add(atEnd: work)
  }

  /// Shuts the thread down, and waits for its end.
  ///
  /// New work is refused at once. What runs continues for `grace`, or until nothing can come any more; then
  /// it is cancelled, and its cleanups have as long again. What still runs then is abandoned, as by
  /// `EventLoop.shutdown`. A body that never returns to the loop keeps the thread, and this waits.
  ///
  /// Further calls wait for the same end; the shortest grace holds. On the thread itself this doesn't wait.
  public func shutdown(grace: Duration = defaultGrace) async {
    core.beginShutdown(grace: grace)
    if isCurrent { return }
    await withCheckedContinuation { core.resume(atEnd: $0) }
  }

  /// As `shutdown`, but blocks the calling thread: for programs and tests without async code.
  @available(*, noasync, message: "use shutdown()")
  public func shutdownAndWait(grace: Duration = defaultGrace) {
    core.beginShutdown(grace: grace)
    if !isCurrent { core.waitForEnd() }
  }
}
