internal import FlowSystem

/// An object that belongs to one thread: an event loop.
protocol ThreadConfined: AnyObject {
  /// Whether nothing runs on it any more.
  var isShutDown: Bool { get }
}

/// The current loop of a thread, which code without a loop at hand uses.
///
/// Only its thread touches it.
final class ThreadLoop {
  /// The loop whose code the thread executes; outside of all loops the one that did last, or the first one made.
  // Weak, because a loop may be released on another thread.
  private weak var loop: (any ThreadConfined)?
  /// Shuts down the loop that was made because the thread had none, and holds it.
  private var endOwn: (() -> Void)?

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key) { pointer in
      guard let pointer else { return }
      // The thread ends, and what is pending on its own loop can't continue.
      Unmanaged<ThreadLoop>.fromOpaque(pointer).takeRetainedValue().endOwn?()
    }
    return key
  }()

  private static var existing: ThreadLoop? {
    pthread_getspecific(key).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
  }

  private static func make() -> ThreadLoop {
    if let existing { return existing }
    let made = ThreadLoop()
    // The thread holds it until its end.
    pthread_setspecific(key, Unmanaged.passRetained(made).toOpaque())
    return made
  }

  /// The current loop of the calling thread.
  static var current: (any ThreadConfined)? { existing?.loop }

  private func set(_ loop: (any ThreadConfined)?) {
    self.loop = loop
    flowsystem_set_current_loop(loop.map { Self.address($0) })
  }

  /// Compared only: the address of a loop that was released can belong to a new one, which is then as current.
  private static func address(_ loop: AnyObject) -> UnsafeMutableRawPointer {
    Unmanaged.passUnretained(loop).toOpaque()
  }

  /// Calls `body`, during which `loop` is the thread's current one.
  @inline(__always)
  static func execute<Result>(for loop: any ThreadConfined, _ body: () -> Result) -> Result {
    if flowsystem_current_loop() == address(loop) { return body() }
    let outer = enter(loop)
    defer { leave(loop, outer) }
    return body()
  }

  @inline(never)
  private static func enter(_ loop: any ThreadConfined) -> (any ThreadConfined)? {
    let thread = make()
    defer { thread.set(loop) }
    return thread.loop
  }

  @inline(never)
  private static func leave(_ loop: any ThreadConfined, _ outer: (any ThreadConfined)?) {
    let next = outer ?? loop
    make().set(next.isShutDown ? nil : next)
  }

  /// Makes a new loop the thread's current one unless there is another.
  static func add(_ loop: any ThreadConfined) {
    let thread = make()
    if thread.loop == nil { thread.set(loop) }
  }

  /// Makes a loop that ends no longer the current one; on another thread than its own it does nothing.
  static func remove(_ loop: any ThreadConfined) {
    if flowsystem_current_loop() == address(loop) { existing?.set(nil) }
  }

  /// Keeps a loop until the thread ends, and calls `end` then.
  static func keep(until end: @escaping () -> Void) { make().endOwn = end }
}

/// The jobs of the main actor, for a loop on the main thread: a loop that blocks that thread has to
/// run them.
final class MainQueue {
  /// Readable when there are jobs.
  let descriptor: Int32

  /// nil on another thread than the main one.
  init?() {
    guard flowsystem_is_main_thread() else { return nil }
    descriptor = flowsystem_main_queue_descriptor()
    if descriptor < 0 { return nil }
  }

  /// Whether a loop is running the jobs, so that Dispatch runs no further one until it returns.
  // Unsafe: only the main thread has a queue.
  nonisolated(unsafe) private static var isDraining = false

  /// Whether `drain` would run jobs.
  var isUsable: Bool { !Self.isDraining }

  /// Runs the jobs; returns whether there were any.
  func drain() -> Bool {
    let outer = Self.isDraining
    Self.isDraining = true
    defer { Self.isDraining = outer }
    return flowsystem_drain_main_queue(descriptor)
  }
}
