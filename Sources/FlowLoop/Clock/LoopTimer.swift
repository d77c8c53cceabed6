/// A job that waits for its time, then for its turn.
///
/// ```swift
/// let timer = loop.schedule(after: .seconds(5)) { run.cancel(reason: "too slow") }
/// try await run.wait()
/// timer.cancel()
/// ```
public final class LoopTimer: TimedJob {
  /// When it is due, in the nanoseconds of the loop's clock.
  package let deadline: Int64

  // Unchecked exclusivity of both: only the loop's thread touches them, and no access lasts into a
  // call of a job.

  @exclusivity(unchecked) private var job: (any LoopJob)?
  /// Set while the timer is pending.
  @exclusivity(unchecked) private var queue: TimerQueue?

  init(deadline: Int64, job: any LoopJob, queue: TimerQueue) {
    self.deadline = deadline
    self.job = job
    self.queue = queue
  }

  /// Whether its time is still to come.
  package var isPending: Bool { queue != nil }

  /// Whether its job is a time limit of work that may execute without waiting.
  var isLimit: Bool { job is any LimitJob }

  /// Releases the job at once, even when it is due and waits for its turn. Called on the loop's
  /// thread.
  public func cancel() {
    // Released last: its end may run code that uses the queue.
    let ended = job
    job = nil
    if let queue {
      self.queue = nil
      queue.noteCancelled()
    }
    _ = ended
  }

  package func takeJob() -> any LoopJob {
    queue = nil
    return self
  }

  /// Called by the loop when the timer's turn has come.
  package func run() {
    let due = job
    job = nil
    due?.run()
  }
}

/// A job that stops something whose time is over: it may run while that executes.
package protocol LimitJob: LoopJob {}

/// A job that keeps track itself whether it is pending, which saves its loop a `LoopTimer`.
package protocol TimedJob: LoopJob {
  /// Whether the job is to run when its time comes. When that changes before its time,
  /// `FlowEventLoop.noteCancelledTimer` has to be called once.
  var isPending: Bool { get }
  /// Called when its time has come, or the loop is shut down; after that it isn't pending. Returns
  /// the job to run.
  func takeJob() -> any LoopJob
}

/// The pending timers of a loop, ordered by deadline, then in the order in which they were added.
///
/// A timer whose deadline isn't before the latest one's is appended to a row, which needs no
/// search: a thousand sleeps of the same length, for example. The others are in a heap with four
/// children per node. Cancelled timers stay until they would be next, or until there are too many.
final class TimerQueue {
  /// Plain data, so that moving an entry counts no references.
  struct Entry {
    let deadline: Int64
    let sequence: UInt64
    // Safe: retained when the entry is made, released when it is removed.
    unowned(unsafe) let job: any TimedJob

    init(deadline: Int64, sequence: UInt64, job: any TimedJob) {
      self.deadline = deadline
      self.sequence = sequence
      self.job = job
      _ = Unmanaged<AnyObject>.passRetained(job)
    }

    /// Releases the job that `init` has retained.
    func release() { Unmanaged<AnyObject>.passUnretained(job).release() }

    @inline(__always)
    func isBefore(_ other: Entry) -> Bool {
      deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
    }
  }

  // Unchecked exclusivity of these properties: only the loop's thread touches them, and no access
  // lasts into a call of a job, or into its release.

  /// Ascending, from `rowStart` on.
  @exclusivity(unchecked) private var row: ContiguousArray<Entry> = []
  @exclusivity(unchecked) private var rowStart = 0
  @exclusivity(unchecked) private var heap: ContiguousArray<Entry> = []
  @exclusivity(unchecked) private var sequence: UInt64 = 0
  @exclusivity(unchecked) private var cancelled = 0

  deinit { removeAll() }

  /// The number of pending timers.
  var count: Int { row.count - rowStart + heap.count - cancelled }
  var isEmpty: Bool { count == 0 }

  /// The deadline of the first pending timer.
  var nextDeadline: Int64? {
    dropCancelled()
    return first?.deadline
  }

  /// Whether each pending timer is a time limit of other work.
  var areAllLimits: Bool {
    // A limit is rarely the only timer: the first ones mostly end the search.
    func isLimit(_ entry: Entry) -> Bool {
      !entry.job.isPending || (entry.job as? LoopTimer)?.isLimit == true
    }
    return heap.allSatisfy(isLimit) && row[rowStart...].allSatisfy(isLimit)
  }

  func add(deadline: Int64, job: any LoopJob) -> LoopTimer {
    let timer = LoopTimer(deadline: deadline, job: job, queue: self)
    add(deadline: deadline, timed: timer)
    return timer
  }

  func add(deadline: Int64, timed job: any TimedJob) {
    sequence &+= 1
    let entry = Entry(deadline: deadline, sequence: sequence, job: job)
    if let last = row.last, rowStart < row.count, deadline < last.deadline {
      // A single timer far in the future doesn't keep all others from the row.
      let before = row.count - 2
      guard before < rowStart || row[before].deadline <= deadline else {
        push(entry)
        return
      }
      row.removeLast()
      push(last)
    }
    row.append(entry)
  }

  /// The job of the first timer that is due at `time`, which is no longer pending then.
  func popDue(at time: Int64) -> (any LoopJob)? {
    while let first, first.deadline <= time {
      removeFirst()
      let job = first.job
      first.release()
      if job.isPending { return job.takeJob() }
      cancelled -= 1
    }
    return nil
  }

  /// Called when a pending job has been cancelled.
  func noteCancelled() {
    cancelled += 1
    if cancelled > 32, cancelled > count { compact() }
  }

  func removeAll() {
    let entries = heap + row[rowStart...]
    heap = []
    row = []
    rowStart = 0
    cancelled = 0
    // No timer is pending when the first is released, because its end may run code that cancels
    // others.
    let jobs = entries.map { $0.job.isPending ? $0.job.takeJob() : $0.job }
    for job in jobs { (job as? LoopTimer)?.cancel() }
    for entry in entries { entry.release() }
  }

  // MARK: The first entry

  @inline(__always)
  private var first: Entry? {
    guard rowStart < row.count else { return heap.first }
    guard let top = heap.first, top.isBefore(row[rowStart]) else { return row[rowStart] }
    return top
  }

  /// Removes the first entry. There must be one.
  private func removeFirst() {
    if rowStart < row.count, heap.first?.isBefore(row[rowStart]) != true {
      rowStart += 1
      if rowStart == row.count {
        row.removeAll(keepingCapacity: row.capacity <= 4096)
        rowStart = 0
      } else if rowStart >= 4096, rowStart * 2 > row.count {
        // Removed entries make room for new ones.
        row.removeSubrange(..<rowStart)
        rowStart = 0
      }
      return
    }
    guard let last = heap.popLast(), !heap.isEmpty else { return }
    heap[0] = last
    siftDown(0)
  }

  private func dropCancelled() {
    while cancelled > 0, let first, !first.job.isPending {
      removeFirst()
      cancelled -= 1
      first.release()
    }
  }

  private func compact() {
    let (oldRow, oldHeap) = (row[rowStart...], heap)
    var ended: ContiguousArray<Entry> = []
    row = []
    rowStart = 0
    heap = []
    cancelled = 0
    for entry in oldRow {
      if entry.job.isPending { row.append(entry) } else { ended.append(entry) }
    }
    for entry in oldHeap {
      if entry.job.isPending { push(entry) } else { ended.append(entry) }
    }
    // Released last, because their ends may run code that uses the queue.
    for entry in ended { entry.release() }
  }

  // MARK: The heap

  private func push(_ entry: Entry) {
    var position = heap.count
    heap.append(entry)
    while position > 0 {
      let parent = (position - 1) / 4
      guard entry.isBefore(heap[parent]) else { break }
      heap[position] = heap[parent]
      position = parent
    }
    heap[position] = entry
  }

  private func siftDown(_ start: Int) {
    let entry = heap[start]
    let count = heap.count
    var position = start
    while true {
      let child = position * 4 + 1
      guard child < count else { break }
      var least = child
      for other in child + 1..<max(child + 1, min(child + 4, count))
      where heap[other].isBefore(heap[least]) {
        least = other
      }
      guard heap[least].isBefore(entry) else { break }
      heap[position] = heap[least]
      position = least
    }
    heap[position] = entry
  }
}
