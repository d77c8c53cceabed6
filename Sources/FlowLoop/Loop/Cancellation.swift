internal import FlowSystem
import Synchronization

/// A stop request for work on another thread.
package final class Cancellation: Sendable {
  private let flag = Atomic<Bool>(false)
  /// An eventfd that is readable after the request; -1 until work waits for a descriptor.
  private let wake = Atomic<Int32>(-1)
  /// How long a wait lasts before the next check if there is no descriptor left for `wake`, in
  /// milliseconds.
  private static let patience: Int32 = 50

  package init() {}

  deinit {
    let descriptor = wake.load(ordering: .relaxed)
    if descriptor >= 0 { close(descriptor) }
  }

  package var isRequested: Bool { flag.load(ordering: .relaxed) }

  package func request() {
    flag.store(true, ordering: .sequentiallyConsistent)
    let descriptor = wake.load(ordering: .sequentiallyConsistent)
    guard descriptor >= 0 else { return }
    var one: UInt64 = 1
    write(descriptor, &one, MemoryLayout<UInt64>.size)
  }

  /// Blocks until a descriptor is ready, or the stop is requested; on a helper thread.
  ///
  /// It may wait for another program, which may never come. Another helper thread takes the place of this
  /// one meanwhile.
  func wait(for descriptor: Int32, writing: Bool) {
    var entries = [
      pollfd(fd: descriptor, events: Int16(writing ? POLLOUT : POLLIN), revents: 0),
      pollfd(fd: -1, events: Int16(POLLIN), revents: 0),
    ]
    if poll(&entries, 1, 0) != 0 { return }
    entries[1].fd = openWake()
    let isBlind = entries[1].fd < 0
    HelperThreads.shared.standAside {
      // The request comes before this check, or finds the descriptor.
      while !flag.load(ordering: .sequentiallyConsistent) {
        let count = poll(&entries, 2, isBlind ? Self.patience : -1)
        if count > 0 || count < 0 && errno != EINTR { return }
      }
    }
  }

  /// Blocks for a time in milliseconds, or until the stop is requested; on a helper thread, whose place another one takes.
  func pause(_ time: Int32) {
    var entry = pollfd(fd: openWake(), events: Int16(POLLIN), revents: 0)
    HelperThreads.shared.standAside {
      if !flag.load(ordering: .sequentiallyConsistent) { poll(&entry, 1, time) }
    }
  }

  private func openWake() -> Int32 {
    let present = wake.load(ordering: .sequentiallyConsistent)
    if present >= 0 { return present }
    let made = flowsystem_eventfd()
    guard made >= 0 else { return -1 }
    let (isFirst, other) = wake.compareExchange(
      expected: -1, desired: made, ordering: .sequentiallyConsistent)
    if isFirst { return made }
    close(made)
    return other
  }
}
