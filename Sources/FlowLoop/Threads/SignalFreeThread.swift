package import FlowSystem

/// Threads that take no signals: a new thread has the signal mask of its creator, and signals are for the threads of
/// the program.
package enum SignalFreeThread {
  /// For Lua's nesting of C calls, as on the main thread.
  package static let mainStackSize = 8 << 20

  private final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Starts a thread.
  ///
  /// - Parameters:
  ///   - stackSize: The size of its stack in bytes; nil for the system's.
  ///   - isDetached: Whether nobody joins it.
  ///   - body: Its code, released at its end.
  /// - Returns: The thread; one that is detached may have ended.
  /// - Throws: The system's error if it gives no thread.
  @discardableResult
  package static func start(
    stackSize: Int? = nil, isDetached: Bool = true, _ body: @escaping @Sendable () -> Void
  ) throws(SystemError) -> pthread_t {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    if isDetached { pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED)) }
    if let stackSize { pthread_attr_setstacksize(&attributes, stackSize) }
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_BLOCK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var thread = pthread_t()
    // The thread releases it.
    let start = Unmanaged.passRetained(Start(body))
    let problem = pthread_create(
      &thread, &attributes,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
        return nil
      }, start.toOpaque())
    if problem != 0 {
      start.release()
      throw SystemError(code: problem)
    }
    return thread
  }
}
