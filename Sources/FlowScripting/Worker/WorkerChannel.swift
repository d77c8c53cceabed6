internal import FlowEngine
internal import Glibc
internal import LuaVM

/// What the main thread and the thread of a worker share.
///
/// Orders go to the worker here, and reports by the mailbox of the main loop. Stops have a way of
/// their own: a worker that is busy takes them between two instructions of its script.
// Unchecked: the mutex guards all that changes.
final class WorkerChannel: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var orders: [WorkerOrder] = []
  private var stops: [(id: UInt64, error: WireError)] = []
  /// The virtual time, as the main loop told it last.
  private var time: Int64 = 0
  private var stopsTaken = 0
  private var isClosing = false
  private var hasEnded = false
  /// Set while the worker's state lives.
  private var attention: LuaAttention?
  /// Set while its loop does.
  private var mailbox: Mailbox?
  private var isWoken = false

  init() {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  private func locked<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }

  // MARK: For the main thread

  /// Sends an order; `now` is the time of the main loop's clock.
  func send(_ order: WorkerOrder, now: Int64) {
    locked {
      orders.append(order)
      time = max(time, now)
      wake()
    }
  }

  /// Tells the time to a worker that waits for it.
  func tell(now: Int64) {
    locked {
      time = max(time, now)
      wake()
    }
  }

  /// Has a task stop; a busy worker is interrupted for it. The worker may miss that: see `nudge`.
  ///
  /// - Returns: The number to ask `hasTaken` with.
  func stop(_ id: UInt64, _ error: WireError) -> Int {
    locked {
      stops.append((id, error))
      wake()
      attention?.call()
      return stopsTaken + stops.count
    }
  }

  /// Interrupts the worker once more for what it hasn't taken.
  func nudge() { locked { attention?.call() } }

  /// Whether the worker has taken that stop, and all before it.
  func hasTaken(stop number: Int) -> Bool { locked { stopsTaken >= number } }

  /// Has the worker end, as soon as it doesn't execute.
  func close() {
    locked {
      isClosing = true
      wake()
      attention?.call()
    }
  }

  /// Waits until the worker has ended; false when it hasn't by `deadline`, a time of the monotonic
  /// clock in nanoseconds.
  func waitForEnd(until deadline: Int64) -> Bool {
    var time = timespec(
      tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
    return locked {
      while !hasEnded {
        if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT { return hasEnded }
      }
      return true
    }
  }

  private func wake() {
    guard let mailbox, !isWoken else { return }
    isWoken = true
    mailbox.post { _ in }
  }

  // MARK: For the worker

  /// Says that the worker can be reached.
  func begin(_ mailbox: Mailbox, _ attention: LuaAttention) {
    locked {
      self.mailbox = mailbox
      self.attention = attention
    }
  }

  /// Says that the worker's state is about to be closed: nothing interrupts it any more.
  func finish() {
    locked {
      attention = nil
      mailbox = nil
    }
  }

  /// Says that the worker's thread has nothing left to do.
  func end() {
    locked {
      hasEnded = true
      pthread_cond_broadcast(condition)
    }
  }

  /// Says that what has come so far is about to be taken: what comes from now on wakes the worker.
  func acknowledge() { locked { isWoken = false } }

  /// Orders that have come.
  func takeOrders() -> [WorkerOrder] {
    locked {
      let taken = orders
      orders = []
      return taken
    }
  }

  /// Stops that have come.
  func takeStops() -> [(id: UInt64, error: WireError)] {
    locked {
      let taken = stops
      stops = []
      stopsTaken += taken.count
      return taken
    }
  }

  var now: Int64 { locked { time } }

  var shallEnd: Bool { locked { isClosing } }
}
