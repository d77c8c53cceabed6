/// Passes on each line of the summaries of runs as it happens: `--follow`. From the moment when two runs
/// are open, it names the run of each of their lines.
package final class SummaryFollower: RunSink, RecordSink {
  /// The meaning of lines, for colours.
  package enum Meaning: Sendable {
    /// The first and the last line of a summary, and the data of the run.
    case frame
    /// A start, a log message, a value and so on.
    case event
    /// A successful end.
    case success
    /// An end by a failure or a stop.
    case failure
    /// A failed attempt that another one follows.
    case retry
  }

  /// The summary of a run that hasn't ended.
  private struct Followed {
    let run: Run
    var writer: SummaryWriter
    /// The name that its lines have once another run was open at the same time.
    var name: ByteString?
  }

  private let options: SummaryOptions
  private let write: (_ lines: ByteString, _ meaning: Meaning, _ run: ByteString?) -> Void
  private var followed: [ObjectIdentifier: Followed] = [:]
  /// How many of them have a name.
  private var names: [ByteString: Int] = [:]

  /// Makes a follower.
  ///
  /// - Parameters:
  ///   - options: The form of the lines.
  ///   - write: Gets one or more lines of one event, each with its end, and the name of the run if
  ///     several have been open: with the run's id when another open one has the same name. Called on
  ///     the loop's thread.
  package init(
    _ options: SummaryOptions = SummaryOptions(),
    write: @escaping (_ lines: ByteString, _ meaning: Meaning, _ run: ByteString?) -> Void
  ) {
    self.options = options
    self.write = write
  }

  package func runBegan(_ run: Run) {
    var writer = SummaryWriter(log: run.log, options: options)
    writer.begin()
    var place = EventLog.Place()
    while let record = run.log.record(at: &place) { writer.write(record) }
    let lines = writer.takeOutput()
    followed[ObjectIdentifier(run.log)] = Followed(run: run, writer: writer)
    names[run.name, default: 0] += 1
    nameLines(of: run)
    write(lines, .frame, shownName(of: run))
  }

  package func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {}

  func append(_ record: LogRecord, in log: EventLog) {
    let id = ObjectIdentifier(log)
    guard let run = followed[id]?.run else { return }
    followed[id]?.writer.write(record)
    guard let lines = followed[id]?.writer.takeOutput(), !lines.isEmpty else { return }
    write(lines, meaning(of: record), shownName(of: run))
  }

  package func runEnded(_ run: Run) {
    guard var writer = followed[ObjectIdentifier(run.log)]?.writer else { return }
    writer.end(isSuccess: run.state == .pending ? nil : run.state == .succeeded)
    write(writer.takeOutput(), .frame, shownName(of: run))
    followed[ObjectIdentifier(run.log)] = nil
    let count = names[run.name] ?? 1
    names[run.name] = count > 1 ? count - 1 : nil
  }

  /// Decides whether the lines of a new run are named, and from now on those of the other open ones.
  private func nameLines(of run: Run) {
    let shown = run.log.shown(run.name)
    if followed.count > 1 { followed[ObjectIdentifier(run.log)]?.name = shown }
    for (id, other) in followed.count == 2 ? followed : [:] where other.name == nil {
      followed[id]?.name = other.run.log.shown(other.run.name)
    }
    switch names[run.name] ?? 0 {
    case ...1: break
    case 2:
      for (id, other) in followed where other.run.name == run.name {
        followed[id]?.name = "\(shown) #\(other.run.id)"
      }
    default: followed[ObjectIdentifier(run.log)]?.name = "\(shown) #\(run.id)"
    }
  }

  private func shownName(of run: Run) -> ByteString? {
    followed[ObjectIdentifier(run.log)]?.name
  }

  private func meaning(of record: LogRecord) -> Meaning {
    switch record.kind {
    case .startWith, .endWith, .snapshotEntry: .frame
    case .finish, .undo: record.firstPayload.tag == .none ? .success : .failure
    case .groupStopped, .groupRefused, .groupEmpty, .caseFailed: .failure
    case .retry: .retry
    default: .event
    }
  }
}
