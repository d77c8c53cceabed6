internal import FlowSystem

/// Writes the lines of a summary.
struct SummaryWriter {
  let log: EventLog
  let options: SummaryOptions
  /// The names before those of the lines of a run that an op has started.
  private let prefix: ByteString
  private let isInner: Bool
  var output: [UInt8] = []
  /// The second that `clock` shows: one call of localtime_r serves all events of a second.
  private var second: Int64 = .min
  /// See `itemsPrefix`.
  private var itemsPrefixes: [UInt32: ByteString] = [:]
  private var clock = tm()

  /// `prefix` is nil unless an op has started the run: the lines about the run itself are then in the outer log, and the
  /// values that it sets have no lines, as those of items.
  init(log: EventLog, options: SummaryOptions, within prefix: ByteString? = nil) {
    self.log = log
    self.prefix = prefix ?? ""
    isInner = prefix != nil
    self.options = options
    if !isInner { output.reserveCapacity(log.count * 48) }
  }

  /// Removes and returns the lines so far.
  mutating func takeOutput() -> ByteString {
    defer { output.removeAll(keepingCapacity: true) }
    return ByteString(output)
  }

  mutating func begin() { write("====== Flow Summary ======\n") }

  mutating func end(isSuccess: Bool?) {
    if let isSuccess { write("Flow isSuccess: \(isSuccess ? "true" : "false")\n") }
    write("======    Ending    ======\n")
  }

  private mutating func write(_ text: ByteString) {
    output.append(contentsOf: text.bytes)
  }

  mutating func write(_ record: LogRecord) {
    if isInner, isOfRun(record) { return }
    if record.kind == .snapshotEntry {
      write("\(keyName(record)): \(value(record.firstPayload))\n")
      return
    }
    // Events without a line.
    switch record.kind {
    case .caseMatched, .progress, .attempt, .program, .request, .wait, .undoStart,
      .programStart, .requestStart:
      return
    default: break
    }
    writeTime(record.time)
    switch record.kind {
    case .startWith: write("[DataBucket] start with:\n")
    case .endWith: write("[DataBucket] end with:\n")
    case .snapshotEntry, .caseMatched, .progress, .attempt, .program, .request, .wait, .undoStart,
      .programStart, .requestStart, .queues:
      break
    case .start, .executed: write("[\(opName(record))] WillStart\n")
    case .finish, .undo:
      let what: ByteString = record.kind == .undo ? "Undo" : "DidFinish"
      write("[\(opName(record))] \(what): \(log.outcome(of: record).inLogLine)")
      if options.durations {
        let seconds = Double(Int64(bitPattern: record.second)) / 1e9
        write(" (\(FlowValue.text(ofSeconds: seconds))s)")
      }
      write("\n")
    case .noCase, .caseFailed:
      write("[\(prefix.inLogLine)Cases] \(log.caseMessage(of: record).inLogLine)\n")
    case .log, .kept, .skipped, .queued, .retry, .transition:
      write("[\(opName(record))] \(log.text(record.firstPayload).inLogLine)\n")
    case .state: write("[\(opName(record))] state: \(value(record.firstPayload))\n")
    case .add:
      write("[DataBucket] add for \(keyName(record)): \(value(record.firstPayload))\n")
    case .replace:
      let old = value(record.secondPayload)
      let new = value(record.firstPayload)
      write("[DataBucket] replace for \(keyName(record)): \(old) -> \(new)\n")
    case .remove: write("[DataBucket] remove for \(keyName(record))\n")
    case .groupCreated, .groupFinished, .groupStopped, .groupEmpty, .groupRefused:
      let (speaker, text) = log.groupMessage(of: record)
      write("[\(prefix.inLogLine)\(speaker)] \(text.inLogLine)\n")
    }
  }

  /// The text of a value in a line. Its secrets have been replaced before it is cut.
  private func value(_ payload: Payload) -> ByteString {
    let text = log.text(payload)
    return (options.full ? text : text.truncated(to: FlowValue.logLimit)).inLogLine
  }

  private func keyName(_ record: LogRecord) -> ByteString {
    log.shown(log.keys.name(of: DataKey(id: record.key))).inLogLine
  }

  private mutating func opName(_ record: LogRecord) -> ByteString {
    log.shown(prefix(of: record.scope) + log.displayName(of: record)).inLogLine
  }

  /// Whether a record is about the run itself, or about its data.
  private func isOfRun(_ record: LogRecord) -> Bool {
    switch record.kind {
    case .startWith, .endWith, .snapshotEntry, .add, .replace, .remove: true
    case .start, .executed, .finish: log.id(of: record) == 0
    default: false
    }
  }

  /// The names before an op's: those of the ops that have started the runs around it, and `itemsPrefix`.
  mutating func prefix(of scope: UInt32) -> ByteString {
    let prefix = prefix + itemsPrefix(of: scope)
    return prefix.count > Self.longestPrefix ? "…/" : prefix
  }

  /// Runs can have started each other in a row of any length.
  private static let longestPrefix = 1000

  /// The names of the items of groups that a scope is in, and the name of the op that has started a run, each with
  /// `/` after it: the name of an op within an item isn't unique.
  private mutating func itemsPrefix(of scope: UInt32) -> ByteString {
    if let known = itemsPrefixes[scope] { return known }
    // Scopes can be nested to any depth: the outermost ones are made first.
    var missing = [scope]
    var prefix: ByteString = ""
    while let next = missing.last {
      let place = log.scopes[Int(next)]
      if place.kind == .top {
        prefix = ""
      } else if let known = itemsPrefixes[place.parent] {
        prefix = known
        // A group has the position of its step, and what an item executes over its own data the item's name.
        let isItem =
          log.subject(scope: log.scopes[Int(place.parent)], position: place.position).index > 0
        if place.kind == .child && !place.isStep
          || isItem && place.kind != .group && place.kind != .inner
        {
          prefix = "\(known)\(log.displayName(scope: place.parent, position: place.position))/"
        }
      } else {
        missing.append(place.parent)
        continue
      }
      itemsPrefixes[next] = prefix
      missing.removeLast()
    }
    return prefix
  }

  private mutating func writeTime(_ time: Int64) {
    let wall = log.wallBase.later(by: time)
    // Rounded down, also before 1970.
    let whole = (wall - (wall % 1_000_000_000 + 1_000_000_000) % 1_000_000_000) / 1_000_000_000
    if whole != second {
      var seconds = time_t(whole)
      localtime_r(&seconds, &clock)
      second = whole
    }
    switch options.time {
    case .clock: writeClock()
    case .iso: writeISO(milliseconds: Int((wall - whole * 1_000_000_000) / 1_000_000))
    }
  }

  private mutating func writeClock() {
    let hour = clock.tm_hour % 12
    write("\(hour == 0 ? 12 : hour):")
    writePadded(Int(clock.tm_min), 2)
    write(":")
    writePadded(Int(clock.tm_sec), 2)
    write(clock.tm_hour < 12 ? " AM " : " PM ")
  }

  private mutating func writeISO(milliseconds: Int) {
    let parts: [(Int, Int, ByteString)] = [
      (Int(clock.tm_year) + 1900, 4, "-"), (Int(clock.tm_mon) + 1, 2, "-"),
      (Int(clock.tm_mday), 2, "T"), (Int(clock.tm_hour), 2, ":"), (Int(clock.tm_min), 2, ":"),
      (Int(clock.tm_sec), 2, "."), (milliseconds, 3, ""),
    ]
    for (number, width, separator) in parts {
      writePadded(number, width)
      write(separator)
    }
    let offset = clock.tm_gmtoff / 60
    if offset == 0 {
      write("Z ")
    } else {
      write(offset < 0 ? "-" : "+")
      writePadded(abs(offset) / 60, 2)
      write(":")
      writePadded(abs(offset) % 60, 2)
      write(" ")
    }
  }

  private mutating func writePadded(_ number: Int, _ width: Int) {
    let digits = String(number)
    for _ in digits.utf8.count..<max(width, digits.utf8.count) { output.append(48) }
    output.append(contentsOf: digits.utf8)
  }
}

/// The form of a summary.
///
/// ```swift
/// print(op.start(on: loop).summary(SummaryOptions(time: .iso, durations: true)))
/// ```
public struct SummaryOptions: Sendable {
  /// The form of the times in a summary's lines.
  public enum Time: Sendable {
    /// `4:17:18 PM`, local time.
    case clock
    /// `2000-01-01T16:17:18.000Z`, local time with its distance from UTC.
    case iso
  }

  /// The form of the times.
  package var time: Time
  /// Whether each `DidFinish` ends with the duration, such as ` (0.5s)`.
  package var durations: Bool
  /// Whether strings are shown whole, however long; else `FlowValue.logLimit` characters of each value.
  package var full: Bool

  /// Makes options of a summary; by default it is Flow-iOS's.
  public init(time: Time = .clock, durations: Bool = false, full: Bool = false) {
    self.time = time
    self.durations = durations
    self.full = full
  }
}

extension Run {
  /// The log as text for people.
  ///
  /// ```swift
  /// print(run.summary(SummaryOptions(durations: true)))
  /// ```
  public func summary(_ options: SummaryOptions = SummaryOptions()) -> ByteString {
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
