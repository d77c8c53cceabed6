/// A piece of work for an event loop.
public protocol LoopJob: AnyObject {
  /// Does the work, on the loop's thread; must not block.
  func run()
}

/// A closure as a job.
final class ClosureJob: LoopJob {
  private let body: () -> Void

  init(_ body: @escaping () -> Void) {
    self.body = body
  }

  func run() { body() }
}

/// First in, first out, in a ring that grows as needed.
struct JobQueue {
  private var ring = ContiguousArray<(any LoopJob)?>(repeating: nil, count: 16)
  private var head = 0
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ job: any LoopJob) {
    if count == ring.count { grow() }
    ring[(head + count) & (ring.count - 1)] = job
    count += 1
  }

  mutating func popFirst() -> (any LoopJob)? {
    guard count > 0 else { return nil }
    let job = ring[head]
    ring[head] = nil
    head = (head + 1) & (ring.count - 1)
    count -= 1
    return job
  }

  private mutating func grow() {
    var larger = ContiguousArray<(any LoopJob)?>(repeating: nil, count: ring.count * 2)
    for offset in 0..<count { larger[offset] = ring[(head + offset) & (ring.count - 1)] }
    ring = larger
    head = 0
  }
}
