/// A piece of work for an event loop.
package protocol LoopJob: AnyObject {
  /// Does the work, on the loop's thread; must not block.
  func run()
}

/// A closure as a job.
package final class ClosureJob: LoopJob {
  private let body: () -> Void

  package init(_ body: @escaping () -> Void) {
    self.body = body
  }

  package func run() { body() }
}

/// A queue of jobs, first in, first out, in a ring that grows as needed.
// Memory of its own: an array would retain each job once more when it is added and removed.
package struct JobQueue: ~Copyable {
  private var ring = UnsafeMutablePointer<any LoopJob>.allocate(capacity: 16)
  /// A power of two.
  private var capacity = 16
  private var head = 0
  package private(set) var count = 0

  package init() {}

  deinit {
    for offset in 0..<count { (ring + place(offset)).deinitialize(count: 1) }
    ring.deallocate()
  }

  package var isEmpty: Bool { count == 0 }

  package mutating func append(_ job: consuming any LoopJob) {
    if count == capacity { grow() }
    (ring + place(count)).initialize(to: job)
    count += 1
  }

  package mutating func popFirst() -> (any LoopJob)? {
    guard count > 0 else { return nil }
    let job = (ring + head).move()
    head = place(1)
    count -= 1
    return job
  }

  /// The index of the job at this offset after the first.
  private func place(_ offset: Int) -> Int { (head + offset) & (capacity - 1) }

  private mutating func grow() {
    let larger = UnsafeMutablePointer<any LoopJob>.allocate(capacity: capacity * 2)
    for offset in 0..<count {
      (larger + offset).moveInitialize(from: ring + place(offset), count: 1)
    }
    ring.deallocate()
    ring = larger
    capacity *= 2
    head = 0
  }
}
