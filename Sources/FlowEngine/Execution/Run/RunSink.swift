/// A sink that is also notified of the start and the end of each run whose events it gets, on the loop's
/// thread.
public protocol RunSink: EventSink {
  /// A run starts: it has its data, and no event yet.
  func runBegan(_ run: Run)
  /// A run has concluded: it has no further events.
  func runEnded(_ run: Run)
}

extension Run {
  func notifySinksOfStart() {
    for sink in log.sinks { (sink as? any RunSink)?.runBegan(self) }
  }

  func notifySinksOfEnd() {
    for sink in log.sinks { (sink as? any RunSink)?.runEnded(self) }
  }
}
