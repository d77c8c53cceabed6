internal import FlowSystem

/// Watches a descriptor for a loop until it is ended.
package final class DescriptorWatch {
  /// The file descriptor that is watched.
  package let descriptor: Int32
  /// Set while it watches; a job may hold its watch.
  fileprivate var job: (any LoopJob)?
  fileprivate let tag: UInt64
  /// Set while it watches.
  fileprivate var poller: Poller?

  fileprivate init(_ descriptor: Int32, _ job: any LoopJob, tag: UInt64, poller: Poller) {
    self.descriptor = descriptor
    self.job = job
    self.tag = tag
    self.poller = poller
  }

  /// Whether it still watches.
  package var isActive: Bool { poller != nil }

  /// Whether the descriptor could be read from when the job was last run: there is something to
  /// read, an error, or an end.
  package fileprivate(set) var wasReadable = false
  /// Whether the descriptor could be written to when the job was last run.
  package fileprivate(set) var wasWritable = false

  /// Changes what the descriptor is watched for. With neither, only errors and the end of the other
  /// side run the job. On the loop's thread; does nothing after the end.
  ///
  /// - Throws: A `SystemError` when the system refuses.
  package func change(reading: Bool, writing: Bool) throws(SystemError) {
    try poller?.change(self, reading: reading, writing: writing)
  }

  /// Whether the loop waits for the watch. Without that the job runs while the loop waits for something
  /// else.
  package var holdsLoop = true {
    didSet {
      if holdsLoop != oldValue, let poller { poller.count(holdsLoop ? 1 : -1) }
    }
  }

  /// Ends the watch; to be called before the descriptor is closed. On the loop's thread.
  package func end() {
    poller?.remove(self)
  }
}

/// The descriptors that a loop watches besides its mailbox: one epoll descriptor, made when first
/// needed.
final class Poller {
  /// Whether the loop waits for any descriptor.
  var isActive: Bool { holders > 0 }
  private var holders = 0
  private var epoll: Int32 = -1
  private var watches: [UInt64: DescriptorWatch] = [:]
  private var lastTag: UInt64 = 0
  /// The mailbox's tag.
  private static let mailboxTag: UInt64 = 0
  /// The most descriptors that one call returns.
  private static let capacity = 64

  deinit {
    if epoll >= 0 { close(epoll) }
  }

  func add(
    _ descriptor: Int32, reading: Bool, writing: Bool, _ job: any LoopJob, mailbox: LoopMailbox
  ) throws(SystemError) -> DescriptorWatch {
    if epoll < 0 {
      try mailbox.open()
      let made = flowsystem_epoll_create()
      guard made >= 0 else { throw Self.failure(errno) }
      let problem = flowsystem_epoll_add(made, mailbox.descriptor, true, false, Self.mailboxTag)
      guard problem == 0 else {
        close(made)
        throw Self.failure(problem)
      }
      epoll = made
    }
    lastTag += 1
    let problem = flowsystem_epoll_add(epoll, descriptor, reading, writing, lastTag)
    guard problem == 0 else { throw Self.failure(problem) }
    let watch = DescriptorWatch(descriptor, job, tag: lastTag, poller: self)
    watches[lastTag] = watch
    holders += 1
    return watch
  }

  fileprivate func count(_ change: Int) { holders += change }

  fileprivate func change(
    _ watch: DescriptorWatch, reading: Bool, writing: Bool
  ) throws(SystemError) {
    let problem = flowsystem_epoll_change(epoll, watch.descriptor, reading, writing, watch.tag)
    guard problem == 0 else { throw Self.failure(problem) }
  }

  fileprivate func remove(_ watch: DescriptorWatch) {
    watch.poller = nil
    watch.job = nil
    watches[watch.tag] = nil
    if watch.holdsLoop { holders -= 1 }
    flowsystem_epoll_remove(epoll, watch.descriptor)
  }

  /// Ends all watches; each of them retains the poller.
  func removeAll() {
    for watch in watches.values { remove(watch) }
  }

  /// Sleeps until something is ready, another descriptor (if not negative) is readable, or `timeout`
  /// nanoseconds have passed (negative: no limit).
  func wait(timeout: Int64, or other: Int32) {
    // An epoll descriptor can itself be waited for, to the nanosecond; epoll's own wait counts
    // milliseconds.
    _ = flowsystem_wait_readable_any(epoll, other, timeout)
  }

  /// Runs the jobs of ready descriptors; returns whether there were any, and whether the mailbox is
  /// ready.
  func runReadyJobs() -> (hasRun: Bool, isMailReady: Bool) {
    var (hasRun, isMailReady) = (false, false)
    withUnsafeTemporaryAllocation(of: flowsystem_ready.self, capacity: Self.capacity) { ready in
      let count = flowsystem_epoll_take(epoll, ready.baseAddress, Int32(Self.capacity))
      for event in ready.prefix(Int(count)) {
        if event.tag == Self.mailboxTag { isMailReady = true }
        // One job may have ended another's watch.
        guard let watch = watches[event.tag], let job = watch.job else { continue }
        watch.wasReadable = event.reading
        watch.wasWritable = event.writing
        hasRun = true
        job.run()
      }
    }
    return (hasRun, isMailReady)
  }

  private static func failure(_ number: Int32) -> SystemError {
    SystemError(
      "a descriptor can't be watched: \(systemMessage(number))", code: number)
  }
}

extension FlowEventLoop {
  /// Runs `job` again and again while a descriptor is ready, until the watch is ended. Meanwhile
  /// the loop isn't stalled, and a virtual clock doesn't advance.
  ///
  /// - Parameters:
  ///   - descriptor: An open pipe, socket or similar, preferably non-blocking: a job may also run
  ///     when nothing is ready any more.
  ///   - writing: Whether to wait until the descriptor can be written to, instead of read from.
  ///   - job: The job; it must be short, because the other descriptors wait for it.
  /// - Returns: The watch, which has to be ended before the descriptor is closed.
  /// - Throws: A `SystemError` for a descriptor that can't be watched, such as a regular file's.
  package func watch(
    _ descriptor: Int32, writing: Bool = false, _ job: any LoopJob
  ) throws(SystemError) -> DescriptorWatch {
    checkThread()
    return try poller.add(
      descriptor, reading: !writing, writing: writing, job, mailbox: mailbox)
  }

  /// Runs `job` again and again while a descriptor is ready for one of several things, which the
  /// watch tells; otherwise as `watch(_:writing:_:)`.
  ///
  /// - Parameters:
  ///   - descriptor: An open socket or similar, non-blocking.
  ///   - reading: Whether to wait until there is something to read, or an end.
  ///   - writing: Whether to wait until it can be written to.
  ///   - job: The job; it must be short, because the other descriptors wait for it.
  /// - Returns: The watch, which has to be ended before the descriptor is closed.
  /// - Throws: A `SystemError` for a descriptor that can't be watched.
  package func watch(
    _ descriptor: Int32, reading: Bool, writing: Bool, _ job: any LoopJob
  ) throws(SystemError) -> DescriptorWatch {
    checkThread()
    return try poller.add(
      descriptor, reading: reading, writing: writing, job, mailbox: mailbox)
  }
}
