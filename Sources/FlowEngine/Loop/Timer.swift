/// A job that waits for its time, then for its turn.
public final class Timer: LoopJob {
  /// When it is due, in the nanoseconds of the loop's clock.
  public let deadline: Int64
  fileprivate let sequence: UInt64
  fileprivate var job: (any LoopJob)?
  fileprivate var position = -1
  /// Set while the timer is pending; the cycle ends when it is due or cancelled.
  fileprivate var queue: TimerQueue?

  fileprivate init(deadline: Int64, sequence: UInt64, job: any LoopJob, queue: TimerQueue) {
    self.deadline = deadline
    self.sequence = sequence
    self.job = job
    self.queue = queue
  }

  /// Whether it is still to come.
  public var isPending: Bool { queue != nil }

  /// Takes the timer out at once, also when it is due and its job waits for its turn. On the loop's
  /// thread.
  public func cancel() {
    queue?.remove(self)
    job = nil
  }

  /// Called by the loop when the timer is due.
  public func run() {
    let due = job
    job = nil
    due?.run()
  }

  fileprivate func isBefore(_ other: Timer) -> Bool {
    deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
  }

  fileprivate func detach() {
    queue = nil
    position = -1
  }
}

/// The pending timers of a loop: a binary heap, first by deadline, then in the order they were made.
final class TimerQueue {
  private var heap: ContiguousArray<Timer> = []
  private var sequence: UInt64 = 0

  var isEmpty: Bool { heap.isEmpty }
  var count: Int { heap.count }
  var nextDeadline: Int64? { heap.first?.deadline }

  func add(deadline: Int64, job: any LoopJob) -> Timer {
    sequence += 1
    let timer = Timer(deadline: deadline, sequence: sequence, job: job, queue: self)
    timer.position = heap.count
    heap.append(timer)
    siftUp(timer.position)
    return timer
  }

  /// The first timer that is due at `time`, which is no longer pending then.
  func popDue(at time: Int64) -> Timer? {
    guard let first = heap.first, first.deadline <= time else { return nil }
    take(at: first.position).detach()
    return first
  }

  func remove(_ timer: Timer) {
    guard timer.position >= 0 else { return }
    take(at: timer.position).detach()
  }

  func removeAll() {
    let all = heap
    heap = []
    for timer in all {
      timer.detach()
      timer.cancel()
    }
  }

  private func take(at position: Int) -> Timer {
    let timer = heap[position]
    let last = heap.removeLast()
    if position < heap.count {
      heap[position] = last
      last.position = position
      siftUp(position)
      siftDown(last.position)
    }
    return timer
  }

  private func siftUp(_ start: Int) {
    var position = start
    while position > 0 {
      let parent = (position - 1) / 2
      guard heap[position].isBefore(heap[parent]) else { return }
      exchange(position, parent)
      position = parent
    }
  }

  private func siftDown(_ start: Int) {
    var position = start
    while true {
      var least = position
      for child in [position * 2 + 1, position * 2 + 2] where child < heap.count {
        if heap[child].isBefore(heap[least]) { least = child }
      }
      guard least != position else { return }
      exchange(position, least)
      position = least
    }
  }

  private func exchange(_ left: Int, _ right: Int) {
    heap.swapAt(left, right)
    heap[left].position = left
    heap[right].position = right
  }
}
