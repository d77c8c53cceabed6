import FlowEngine
import Glibc
import Testing

/// Does `work` on a thread of its own and comes back.
func onAnotherThread(_ work: @escaping @Sendable () -> Bool) async -> Bool {
  await withCheckedContinuation { continuation in
    let box = Unmanaged.passRetained(Work { continuation.resume(returning: work()) })
    var thread = pthread_t()
    pthread_create(&thread, nil, { runWork($0) }, box.toOpaque())
    pthread_detach(thread)
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

/// A thread with a loop that goes on until it is stopped.
final class LoopThread: @unchecked Sendable {
  // Set by the thread before it posts the semaphore, which the maker waits for; the thread sanitizer
  // knows semaphores, but not continuations that are resumed early.
  private var made: (mailbox: Mailbox, external: ExternalWork)?
  private let isReady: UnsafeMutablePointer<sem_t>

  init() {
    isReady = .allocate(capacity: 1)
    sem_init(isReady, 0, 0)
    let box = Unmanaged.passRetained(Work { self.run() })
    var thread = pthread_t()
    pthread_create(&thread, nil, { runWork($0) }, box.toOpaque())
    pthread_detach(thread)
    sem_wait(isReady)
  }

  deinit {
    sem_destroy(isReady)
    isReady.deallocate()
  }

  func mailbox() throws -> Mailbox { try #require(made).mailbox }

  func stop() { made?.external.end() }

  private func run() {
    let loop = EventLoop()
    made = (loop.mailbox, loop.mailbox.begin())
    sem_post(isReady)
    loop.runUntilIdle()
    loop.shutdown()
  }
}

/// Does `work` with a loop on a thread of its own, so that the threads of Swift's executor, which may
/// be as few as one, are free for what the loop waits for.
func onLoopThread<Result: Sendable>(
  _ work: @escaping @Sendable (EventLoop) -> Result
) async -> Result {
  await withCheckedContinuation { continuation in
    let box = Unmanaged.passRetained(
      Work {
        let loop = EventLoop()
        let result = work(loop)
        loop.shutdown()
        continuation.resume(returning: result)
      })
    var thread = pthread_t()
    pthread_create(&thread, nil, { runWork($0) }, box.toOpaque())
    pthread_detach(thread)
  }
}
