/// The form of a summary.
public struct SummaryOptions: Sendable {
  /// The form of the times in a summary's lines.
  public enum Time: Sendable {
    /// `4:17:18 PM`, local time.
    case clock
    /// `2000-01-01T16:17:18.000Z`, local time with its distance from UTC.
    case iso
  }

  /// The form of the times.
  public var time: Time
  /// Whether each `DidFinish` ends with the duration, such as ` (0.5s)`.
  public var durations: Bool
  /// Whether strings are shown whole, however long; else `FlowValue.logLimit` characters of each value.
  public var full: Bool

  /// Makes options of a summary; by default it is as in the seed.
  public init(time: Time = .clock, durations: Bool = false, full: Bool = false) {
    self.time = time
    self.durations = durations
    self.full = full
  }
}

extension Run {
  /// The log as text for people.
  public func summary(_ options: SummaryOptions = SummaryOptions()) -> String {
    summaryBytes(options).description
  }
  /// The bytes of `summary`.
  package func summaryBytes(_ options: SummaryOptions = SummaryOptions()) -> ByteString {
    loop.checkThread()
    return log.summary(options, isSuccess: isSuccess)
  }

  /// The start and the end of the summary, where the log has more than `most` records.
  package func summaryExcerpt(most: Int) -> ByteString {
    loop.checkThread()
    return log.summary(SummaryOptions(), isSuccess: isSuccess, most: most)
  }

  private var isSuccess: Bool? { state == .pending ? nil : state == .succeeded }
}

extension EventLog {
  /// The log as text for people; `isSuccess` is nil for a run that is still pending. Of a log with more than
  /// `most` records those in the middle are left out.
  func summary(
    _ options: SummaryOptions, isSuccess: Bool?, most: Int = .max
  ) -> ByteString {
    var writers: ContiguousArray = [SummaryWriter(log: self, options: options)]
    writers[0].begin()
    if let note = droppedNote { writers[0].output += ByteString("… \(note) …\n").bytes }
    let omitted = max(0, recordCountWithChildren - most)
    let first = omitted > 0 ? most / 2 : .max
    var records = MergedRecords(self)
    var number = 0
    while let (record, source) = records.next() {
      if number == first {
        writers[0].output +=
          ByteString("… \(omitted) records of the log are left out here …\n").bytes
      }
      if number < first || number >= first + omitted {
        writers[source].write(record)
        if source > 0 {
          let lines = writers[source].takeOutput()
          writers[0].output += lines.bytes
        }
      }
      // A log of a run that this record begins.
      for child in records.sources[writers.count...] {
        let prefix = child.outer.map { writers[$0.source].prefix(of: $0.scope) }
        writers.append(SummaryWriter(log: child.log, options: options, within: prefix))
      }
      number += 1
    }
    writers[0].end(isSuccess: isSuccess)
    return ByteString(writers[0].output)
  }
}
