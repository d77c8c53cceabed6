internal import FlowEngine
internal import FlowSystem

/// The thread that writes about one run, and its queue. It takes whatever has been queued as one transaction.
///
/// The thread starts with the first command, blocks all signals, and ends after `stop` when the queue is
/// empty. In between it gives a sign of life now and then.
///
/// A loop that would only sleep until its commands are on the disk writes them itself (`writeHere`): waking the thread,
/// and being woken by it, may take longer than a commit.
// The monitor guards all properties that change, and the thread that sets `isWriting` uses the session.
final class RunWriter: @unchecked Sendable {
  /// The number by which the loop finds what waits for the writes.
  let completions: UInt64
  private let target: RunTarget
  private let mailbox: LoopMailbox
  private let monitor = Monitor()
  private let session: RunSession
  /// Whether the session is in use.
  private var isWriting = false
  /// How long the last transaction took, in nanoseconds.
  private var lastTime = Int64.max
  private var queue: [RunCommand] = []
  /// Keeps the loop waiting, and a virtual clock still, while there is something to write.
  private var pending: [ExternalWork] = []
  private var isStopping = false
  private var firstFailure: FlowError?
  private var committed = 0
  private var thread: pthread_t?

  init(
    _ target: RunTarget, mailbox: LoopMailbox, completions: UInt64
  ) {
    self.target = target
    session = RunSession(target)
    self.mailbox = mailbox
    self.completions = completions
  }

  /// The first error of a write.
  var failure: FlowError? { monitor.locked { firstFailure } }

  /// How many transactions are on the disk.
  var transactions: Int { monitor.locked { committed } }

  /// Starts the thread before there is something to write, so that it gives signs of life. On the loop's thread.
  func begin() {
    if thread == nil { start() }
  }

  /// Queues commands. On the loop's thread.
  func submit(_ commands: [RunCommand]) {
    let work = mailbox.begin()
    let needsThread = monitor.locked {
      queue.append(contentsOf: commands)
      pending.append(work)
      monitor.signal()
      return thread == nil
    }
    if needsThread { start() }
  }

  /// For how long a loop may be kept busy by a transaction, in nanoseconds.
  static let shortTime: Int64 = 1_000_000

  /// Writes commands on the loop's thread, if nothing else is being written, and the last transaction was short.
  ///
  /// - Returns: Whether they are on the disk. If not, they have to be submitted.
  func writeHere(_ commands: [RunCommand]) -> Bool {
    let isFree = monitor.locked {
      guard thread != nil, target.mirror == nil, queue.isEmpty, !isWriting, !isStopping,
        lastTime < Self.shortTime
      else { return false }
      isWriting = true
      return true
    }
    guard isFree else { return false }
    let begun = SystemClock.read(CLOCK_MONOTONIC)
    let isWritten = session.writeAtOnce(commands)
    let time = SystemClock.read(CLOCK_MONOTONIC) - begun
    monitor.locked {
      isWriting = false
      if isWritten {
        committed += 1
        lastTime = time
      }
    }
    return isWritten
  }

  /// Has the thread end after what is queued, without waiting for it.
  func stop() {
    if let thread = requestStop() { pthread_detach(thread) }
  }

  /// Has the thread end after what is queued, and waits for it.
  func stopAndWait() {
    if let thread = requestStop() { pthread_join(thread, nil) }
  }

  /// Returns the thread to the first caller.
  private func requestStop() -> pthread_t? {
    monitor.locked {
      let stopped = isStopping ? nil : thread
      isStopping = true
      monitor.signal()
      return stopped
    }
  }

  private func start() {
    let error: FlowError
    do throws(SystemError) {
      thread = try SignalFreeThread.start(isDetached: false) { [self] in work() }
      return
    } catch let problem {
      error = StoreProblem.other.error(
        "can't start the thread that writes the store '\(target.folder)': \(problem.message)")
    }
    let (commands, works) = monitor.locked {
      if firstFailure == nil { firstFailure = error }
      return takeAll()
    }
    report(commands.count, error, works)
  }

  private func work() {
    session.begin()
    while let (commands, works) = next() {
      let begun = SystemClock.read(CLOCK_MONOTONIC)
      if commands.isEmpty {
        session.beat()
        monitor.locked { isWriting = false }
        continue
      }
      let error = session.write(commands) { monitor.locked { isStopping } }
      let time = SystemClock.read(CLOCK_MONOTONIC) - begun
      monitor.locked {
        isWriting = false
        lastTime = time
        if error == nil { committed += 1 } else if firstFailure == nil { firstFailure = error }
      }
      report(commands.count, error, works)
    }
    // Nobody else uses it after `isStopping`.
    session.close()
  }

  /// Waits for commands; without any for a while it returns none, nil at the end. The thread may use the session then.
  private func next() -> ([RunCommand], [ExternalWork])? {
    monitor.locked {
      let beat = SystemClock.read(CLOCK_MONOTONIC) + Int64(session.interval * 1e9)
      // While the loop writes, there is a sign of life.
      while queue.isEmpty, !isStopping, monitor.wait(until: beat) || isWriting {}
      if queue.isEmpty, isStopping { return nil }
      isWriting = true
      return takeAll()
    }
  }

  /// Takes all that is queued. Called with the lock held.
  private func takeAll() -> ([RunCommand], [ExternalWork]) {
    let taken = (queue, pending)
    queue = []
    pending = []
    return taken
  }

  private func report(_ count: Int, _ error: FlowError?, _ works: [ExternalWork]) {
    // A loop that drops the job releases the works, which ends them.
    mailbox.post { [completions] loop in
      for work in works { work.endOnLoop() }
      RunCompletions.of(loop).complete(count, of: completions, with: error)
    }
  }
}
