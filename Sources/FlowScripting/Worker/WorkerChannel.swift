internal import FlowEngine
internal import Glibc
internal import LuaVM

/// The data shared by the main thread and the thread of a worker.
///
/// Orders reach the worker here, and reports return by the mailbox of the main loop. Stops have a
/// separate way: a busy worker takes them between two instructions of its script.
// Unchecked: the mutex guards all mutable data.
final class WorkerChannel: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var orders: [WorkerOrder] = []
  private var stops: [(id: UInt64, error: WireError)] = []
  /// The virtual time, as last sent by the main loop.
  private var time: Int64 = 0
  private var stopsTaken = 0
  private var isClosing = false
  private var hasEnded = false
  /// Set while the worker's state exists. Called with the lock held: `finish` takes it away before the state
  /// is released, and the call only sends a signal.
  private var attention: LuaAttention?
  /// Set while its loop exists.
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
    post(
      locked {
        orders.append(order)
        time = max(time, now)
        return takeWake()
      })
  }

  /// Sends the time to a worker that waits for it.
  func sendTime(now: Int64) {
    post(
      locked {
        time = max(time, now)
        return takeWake()
      })
  }

  /// Makes a task stop; a busy worker is interrupted for it. The worker may miss that: see `nudge`.
  ///
  /// - Returns: The number for `hasTaken`.
  func stop(_ id: UInt64, _ error: WireError) -> Int {
    let (number, sleeping) = locked {
      stops.append((id, error))
      attention?.call()
      return (stopsTaken + stops.count, takeWake())
    }
    post(sleeping)
    return number
  }

  /// Interrupts the worker once more for stops that it hasn't taken.
  func nudge() { locked { attention?.call() } }

  /// Whether the worker has taken that stop, and all before it.
  func hasTaken(stop number: Int) -> Bool { locked { stopsTaken >= number } }

  /// Makes the worker end, as soon as it isn't executing.
  func close() {
    post(
      locked {
        isClosing = true
        attention?.call()
        return takeWake()
      })
  }

  /// Waits until the worker has ended; returns false if it hasn't by `deadline`, a time of the
  /// monotonic clock in nanoseconds.
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

  /// The mailbox by which the caller has to wake the worker once it has released the lock; nil when the
  /// worker is or will be awake.
  private func takeWake() -> Mailbox? {
    guard let mailbox, !isWoken else { return nil }
    isWoken = true
    return mailbox
  }

  /// Wakes a worker, without the lock.
  private func post(_ mailbox: Mailbox?) { mailbox?.post { _ in } }

  // MARK: For the worker

  /// Marks the worker as reachable.
  func begin(_ mailbox: Mailbox, _ attention: LuaAttention) {
    locked {
      self.mailbox = mailbox
      self.attention = attention
    }
  }

  /// Marks that the worker's state is about to be closed: nothing interrupts it any more.
  func finish() {
    locked {
      attention = nil
      mailbox = nil
    }
  }

  /// Marks that the worker's thread has nothing left to do.
  func end() {
    locked {
      hasEnded = true
      pthread_cond_broadcast(condition)
    }
  }

  /// Marks that all messages so far are about to be taken: later ones wake the worker.
  func acknowledge() { locked { isWoken = false } }

  /// Received orders.
  func takeOrders() -> [WorkerOrder] {
    locked {
      let taken = orders
      orders = []
      return taken
    }
  }

  /// Received stops.
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
