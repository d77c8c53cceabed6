import FlowEngine
import Glibc
import Synchronization

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
final class LoopThread: Sendable {
  private let ready = Mutex<UnsafeContinuation<Mailbox, Never>?>(nil)
  private let external = Mutex<ExternalWork?>(nil)

  func start() async -> Mailbox {
    await withUnsafeContinuation { continuation in
      ready.withLock { $0 = continuation }
      let box = Unmanaged.passRetained(Work { self.run() })
      var thread = pthread_t()
      pthread_create(&thread, nil, { runWork($0) }, box.toOpaque())
      pthread_detach(thread)
    }
  }

  func stop() { external.withLock { $0 = nil } }

  private func run() {
    let loop = EventLoop()
    external.withLock { $0 = loop.mailbox.begin() }
    ready.withLock { $0 }?.resume(returning: loop.mailbox)
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
