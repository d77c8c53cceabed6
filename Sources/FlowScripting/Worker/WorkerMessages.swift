package import FlowEngine
@_spi(Scripting) package import LuaVM

/// The function of an op, identified by its number for workers, so that it travels once.
package final class WorkerCode: Sendable {
  package let id: UInt64
  package let package: CodePackage
  /// The modules that it may require, where the files of the script aren't.
  package let modules: [ModuleSource]
  /// The names of those that are shared libraries, which have to be there.
  package let native: [ByteString]

  package init(
    id: UInt64, package: CodePackage, modules: [ModuleSource] = [], native: [ByteString] = []
  ) {
    self.id = id
    self.package = package
    self.modules = modules
    self.native = native
  }
}

/// The declarations of an op, on their way to a worker.
package struct WorkerDeclaration: Sendable {
  package let name: ByteString
  /// As it was written; a worker parses it again.
  package let type: ByteString

  package init(name: ByteString, type: ByteString) {
    self.name = name
    self.type = type
  }
}

/// One execution of an op, or one call of a function.
package struct WorkerJob: Sendable {
  package let code: WorkerCode
  /// The arguments of the function, after `ctx` if there is one.
  package let arguments: WireBatch
  package let kind: Kind

  package init(code: WorkerCode, arguments: WireBatch, kind: Kind) {
    self.code = code
    self.arguments = arguments
    self.kind = kind
  }

  package enum Kind: Sendable {
    case op(OpPlace)
    /// A continuation, the form in which it gets the previous task's outcome, and the span that encloses it.
    case call(CallInput, span: SpanOrigin?)
  }

  /// The place where an op executes, for the fields of `ctx`.
  package struct OpPlace: Sendable {
    package var name: ByteString
    package let index: Int
    package let label: ByteString?
    package let attempt: Int
    /// The identity that is the same in all attempts; see `OpContext.lineage`.
    package let lineage: UInt64
    /// Its span; nil without a trace.
    package let span: SpanOrigin?
    /// The seconds that its cleanups have after a stop; nil for the default.
    package let grace: Duration?
    /// The bytes that it may allocate; nil for no limit. It has the worker for itself then.
    package let memory: Int?
    /// For a final step, the error with which its flow is ending.
    package var endingError: WireError?
    /// The keys of the streams that it reads.
    package var streams: [ByteString] = []
    /// The keys that it may read.
    package let visible: [ByteString]
    /// Those of them that have a value, which is at the same index of `data`.
    package let keys: [ByteString]
    package var data: WireBatch
  }

  package enum CallInput: Sendable {
    /// The arguments alone.
    case values
    /// A settled copy of the task: of its result, which is the argument, or of its error.
    case task(WireError?)
    /// The error alone.
    case error(WireError)
  }
}

/// A group whose items a worker executes.
package struct WorkerGroup: Sendable {
  let code: WorkerCode
  let arguments: WireBatch
  let name: ByteString
  let needs: [WorkerDeclaration]
  let gives: [WorkerDeclaration]
  let itemKey: ByteString
  let collectKey: ByteString?
  /// The data that items read through to.
  let keys: [ByteString]
  let data: WireBatch
  /// The most items that execute at the same time in this worker.
  let limit: Int
  let stopsAtFailure: Bool
  /// For a final step, the error with which its flow is ending.
  let endingError: WireError?
  /// See `ItemWork`.
  let lineage: UInt64
  let spans: SpanOrigin?
}

/// An order to a worker.
package enum WorkerOrder: Sendable {
  case start(id: UInt64, WorkerJob)
  /// Short jobs: each begins when those before it have ended, or wait for something.
  case startEach([(id: UInt64, job: WorkerJob)])
  case open(id: UInt64, WorkerGroup)
  /// Items of a group: the 0-based index of the first one, the items, and their labels, if there are any.
  case items(id: UInt64, first: Int, WireBatch, labels: ContiguousArray<ByteString>)
  /// There are no more.
  case close(id: UInt64)
  /// The code with this number isn't used any more.
  case forget(code: UInt64)
  /// A limit that it has asked for is its own now, or why it can't be.
  case limit(request: UInt64, problem: ByteString?)
  /// The reply to a request about a stream.
  case stream(request: UInt64, StreamReply)
}

/// The report of a worker about the time since its last one.
package struct WorkerReport: Sendable {
  /// The number of orders it had taken.
  package var taken: UInt64 = 0
  /// Whether it now waits for an event, so that it can begin something else; nil if it continues.
  package var sleep: Sleep?
  package var jobs: [JobEvent] = []
  /// Those that were withdrawn before they had begun.
  package var returned: [UInt64] = []
  package var groups: [GroupEvents] = []
  /// Failures of tasks that are unobserved, and that nothing can observe any more.
  package var failures: [(name: ByteString, error: WireError)] = []
  /// Limits that its code wants, and those that it gives back.
  var limits: [LimitRequest] = []
  /// Requests of its ops about streams.
  var streams: [StreamRequest] = []

  package var isEmpty: Bool {
    jobs.isEmpty && returned.isEmpty && groups.isEmpty && failures.isEmpty && limits.isEmpty
      && streams.isEmpty
  }

  /// The reason why a worker without work waits.
  package enum Sleep: Equatable {
    /// For other threads: nothing of its own can continue.
    case idle
    /// For a time of the real clock, or a program.
    case busyElsewhere
    /// For a time of the virtual clock.
    case until(Int64)
  }

  package struct JobEvent: Sendable {
    package let id: UInt64
    package let time: Int64
    package let what: What

    package init(id: UInt64, time: Int64, what: What) {
      self.id = id
      self.time = time
      self.what = what
    }

    package enum What: Sendable {
      case log(ByteString)
      case progress(done: Double, total: Double?)
      /// A program or request has ended.
      case work(LoggedWork)
      /// `.null` removes the key.
      case set(ByteString, WireValue, WireBatch)
      /// It has made a temporary folder, which stays until the run of its op ends: outputs may be files in it.
      case folder(ByteString)
      case ended(WireError?, result: WireValue, WireBatch)
    }
  }

  package struct GroupEvents: Sendable {
    package let id: UInt64
    package let slice: LogSlice
    /// The 0-based indices of the ended items; the outputs are at the same indices.
    package let indices: ContiguousArray<Int32>
    package let outputs: WireBatch
    /// The errors of the failed ones, each with its index, in order.
    package let failures: [(place: Int, error: WireError)]
    /// The temporary folders that items have made.
    package let folders: [(index: Int32, path: ByteString)]
    /// The time for which the worker was busy with it, in nanoseconds.
    package let busy: Int64
  }
}

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
  private var mailbox: LoopMailbox?
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
  private func takeWake() -> LoopMailbox? {
    guard let mailbox, !isWoken else { return nil }
    isWoken = true
    return mailbox
  }

  /// Wakes a worker, without the lock.
  private func post(_ mailbox: LoopMailbox?) { mailbox?.post { _ in } }

  // MARK: For the worker

  /// Marks the worker as reachable.
  func begin(_ mailbox: LoopMailbox, _ attention: LuaAttention) {
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
