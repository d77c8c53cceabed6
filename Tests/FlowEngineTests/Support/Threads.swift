import FlowEngine
import Glibc
import Synchronization
import Testing

/// Does `work` on a thread of its own and returns its result.
func onAnotherThread(_ work: @escaping @Sendable () -> Bool) async -> Bool {
  await withCheckedContinuation { continuation in
    let box = Unmanaged.passRetained(Work { continuation.resume(returning: work()) })
    var thread = pthread_t()
    pthread_create(&thread, nil, { runWork($0) }, box.toOpaque())
    pthread_detach(thread)
  }
}

/// Does `work` on a thread of its own and returns at once.
func startThread(_ work: @escaping @Sendable () -> Void) {
  let box = Unmanaged.passRetained(Work(work))
  var thread = pthread_t()
  pthread_create(&thread, nil, { runWork($0) }, box.toOpaque())
  pthread_detach(thread)
}

/// A thread that does its work at once, and can be waited for without leaving this one.
struct JoinableThread {
  private var thread = pthread_t()

  init(_ work: @escaping @Sendable () -> Void) {
    let box = Unmanaged.passRetained(Work(work))
    pthread_create(&thread, nil, { runWork($0) }, box.toOpaque())
  }

  func join() { pthread_join(thread, nil) }
}

/// Does `work` on a thread of its own and waits for it, without leaving this one.
func finishThread(_ work: @escaping @Sendable () -> Void) { JoinableThread(work).join() }

/// A barrier: threads continue once all of them have arrived.
final class Gate: Sendable {
  private let missing: Atomic<Int>

  init(_ count: Int) {
    missing = Atomic(count)
  }

  func wait() {
    missing.subtract(1, ordering: .acquiringAndReleasing)
    while missing.load(ordering: .acquiring) > 0 { sched_yield() }
  }
}

private final class Work: Sendable {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
  }
}

private func runWork(_ pointer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let pointer { Unmanaged<Work>.fromOpaque(pointer).takeRetainedValue().body() }
  return nil
}

/// Does `work` with a loop on a thread of its own, so that the threads of Swift's executor, which may
/// be as few as one, are free for what the loop waits for.
func onLoopThread<Result: Sendable>(
  _ work: @escaping @Sendable (FlowEventLoop) -> Result
) async -> Result {
  await withCheckedContinuation { continuation in
    let box = Unmanaged.passRetained(
      Work {
        let loop = FlowEventLoop()
        let result = work(loop)
        loop.shutdown()
        continuation.resume(returning: result)
      })
    var thread = pthread_t()
    pthread_create(&thread, nil, { runWork($0) }, box.toOpaque())
    pthread_detach(thread)
  }
}

/// A flag that is raised once, on any thread.
final class Flag: Sendable {
  private let state = Locked<(isRaised: Bool, continuation: UnsafeContinuation<Void, Never>?)>(
    (false, nil))

  var isRaised: Bool { state.withLock { $0.isRaised } }

  var continuation: UnsafeContinuation<Void, Never>? {
    get { state.withLock { $0.continuation } }
    set { state.withLock { $0.continuation = newValue } }
  }

  /// Waits until the flag is raised. Only one caller may wait.
  func wait() async {
    await withUnsafeContinuation { continuation in
      let isRaised = state.withLock { state in
        if !state.isRaised { state.continuation = continuation }
        return state.isRaised
      }
      if isRaised { continuation.resume() }
    }
  }

  func raise() {
    let continuation = state.withLock { state in
      state.isRaised = true
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume()
  }
}
