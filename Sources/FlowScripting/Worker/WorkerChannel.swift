internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The data shared by the main thread and the thread of a worker.
///
/// Orders reach the worker here, and reports return by the mailbox of the main loop. Stops have a
/// separate way: a busy worker takes them between two instructions of its script.
// Unchecked: the monitor guards all mutable data.
final class WorkerChannel: @unchecked Sendable {
  private let monitor = Monitor()
  private var orders: [WorkerOrder] = []
  /// Without an error it applies only to what hasn't begun.
  private var stops: [(id: UInt64, error: WireError?)] = []
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

  // MARK: For the main thread

  /// Sends an order; `now` is the time of the main loop's clock.
  func send(_ order: WorkerOrder, now: Int64) {
    post(
      monitor.locked {
        orders.append(order)
        time = max(time, now)
        return takeWake()
      })
  }

  /// Sends the time to a worker that waits for it.
  func sendTime(now: Int64) {
    post(
      monitor.locked {
        time = max(time, now)
        return takeWake()
      })
  }

  /// Makes a task stop; a busy worker is interrupted for it. The worker may miss that: see `nudge`.
  ///
  /// - Returns: The number for `hasTaken`.
  func stop(_ id: UInt64, _ error: WireError) -> Int { add(id, error) }

  /// Takes a job back, if it hasn't begun.
  func withdraw(_ id: UInt64) { _ = add(id, nil) }

  private func add(_ id: UInt64, _ error: WireError?) -> Int {
    let (number, sleeping) = monitor.locked {
      stops.append((id, error))
      attention?.call()
      return (stopsTaken + stops.count, takeWake())
    }
    post(sleeping)
    return number
  }

  /// Has the worker look at everything that concerns it, whether it is busy or sleeps.
  func callAttention() {
    post(
      monitor.locked {
        attention?.call()
        return takeWake()
      })
  }

  /// Interrupts the worker once more for stops that it hasn't taken.
  func nudge() { monitor.locked { attention?.call() } }

  /// Whether the worker has taken that stop, and all before it.
  func hasTaken(stop number: Int) -> Bool { monitor.locked { stopsTaken >= number } }

  /// Makes the worker end, as soon as it isn't executing.
  func close() {
    post(
      monitor.locked {
        isClosing = true
        attention?.call()
        return takeWake()
      })
  }

  /// Waits until the worker has ended; returns false if it hasn't by `deadline`, a time of the
  /// monotonic clock in nanoseconds.
  func waitForEnd(until deadline: Int64) -> Bool {
    monitor.locked {
      while !hasEnded, monitor.wait(until: deadline) {}
      return hasEnded
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
    monitor.locked {
      self.mailbox = mailbox
      self.attention = attention
    }
  }

  /// Marks that the worker's state is about to be closed: nothing interrupts it any more.
  func finish() {
    monitor.locked {
      attention = nil
      mailbox = nil
    }
  }

  /// Marks that the worker's thread has nothing left to do.
  func end() {
    monitor.locked {
      hasEnded = true
      monitor.broadcast()
    }
  }

  /// Marks that all messages so far are about to be taken: later ones wake the worker.
  func acknowledge() { monitor.locked { isWoken = false } }

  /// Received orders.
  func takeOrders() -> [WorkerOrder] {
    monitor.locked {
      let taken = orders
      orders = []
      return taken
    }
  }

  /// Received stops.
  func takeStops() -> [(id: UInt64, error: WireError?)] {
    monitor.locked {
      let taken = stops
      stops = []
      stopsTaken += taken.count
      return taken
    }
  }

  var now: Int64 { monitor.locked { time } }

  var shallEnd: Bool { monitor.locked { isClosing } }
}
