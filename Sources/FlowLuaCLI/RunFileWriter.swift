internal import FlowEngine
internal import FlowScripting
internal import Glibc

/// Collects the runs of a script for `--report`, `--timeline`, `--trace` and `--otlp`, and writes these files.
final class RunFileWriter {
  struct Failure: Error {
    let message: ByteString
    /// Whether the script succeeds nevertheless: its work doesn't depend on a collector.
    var isForgiven = false
  }

  private enum Entry {
    case running(Run)
    /// Not the run, which would keep its data.
    case ended(TimelinePage.Entry)
  }

  private let options: LongOptions
  /// The name of the script.
  private let title: ByteString
  /// The host of the runs, once there is one.
  // Not weak: see `Messages.host`.
  private var host: ScriptHost?
  private var entries: ContiguousArray<Entry> = []
  private var places: [ObjectIdentifier: Int] = [:]
  private var live: LivePage?

  /// Nil when no option needs the runs.
  init?(_ options: LongOptions, title: ByteString) {
    guard
      options.report != nil || options.timeline != nil || options.trace != nil
        || options.otlp != nil
    else {
      return nil
    }
    self.options = options
    self.title = title
    // Made before the monitors register their work at exit, so that temporary files can be made there.
    _ = TemporaryPaths.shared
  }

  /// Begins to write the page while the script executes, if there is to be one.
  func watch(_ host: ScriptHost) {
    self.host = host
    let loop = host.loop
    // On a virtual clock most scripts take no time, and the others show times that nobody waits for.
    guard let path = options.timeline, path != "-", !loop.timeSource.isVirtual else { return }
    let source = LivePage.Source(
      size: { [unowned self] in recordCount }, isRunning: { [unowned self] in !places.isEmpty },
      page: { [unowned self] interval in
        let (entries, script) = (shownEntries, script)
        return { Self.page(of: entries, script, .live(every: Double(interval) / 1e9)) }
      })
    live = LivePage(path, on: loop, source)
  }

  func runBegins(_ run: Run) {
    places[ObjectIdentifier(run)] = entries.count
    entries.append(.running(run))
  }

  func runEnded(_ run: Run) {
    guard let place = places.removeValue(forKey: ObjectIdentifier(run)) else { return }
    entries[place] = .ended(TimelinePage.Entry(run))
  }

  /// Writes the files; those that can't be written are errors, after the others have been written.
  func write() -> [Failure] {
    live?.end()
    let all = shownEntries
    let runs = all.map(\.spans)
    var failures: [Failure] = []
    if let path = options.report {
      save(RunReport.text(of: runs, title: script), path, "report", &failures)
    }
    if let path = options.timeline {
      save(Self.page(of: all, script, .final), path, "timeline", &failures)
    }
    if let path = options.trace { save(RunTrace.text(of: runs), path, "trace", &failures) }
    if let target = options.otlp { export(runs, to: target, &failures) }
    return failures
  }

  /// The runs up to now.
  private var shownEntries: [TimelinePage.Entry] {
    entries.compactMap { entry in
      switch entry {
      case .running(let run): run.isSkipped ? nil : TimelinePage.Entry(run)
      case .ended(let ended): ended
      }
    }
  }

  /// The number of records of all runs, and of their starts and ends.
  private var recordCount: Int {
    entries.reduce(0) { sum, entry in
      switch entry {
      case .running(let run): sum + 1 + run.log.allAppended
      case .ended(let ended): sum + 2 + ended.recordCount
      }
    }
  }

  private var script: ByteString { host?.loop.secrets.redacted(title) ?? title }

  private static func page(
    of entries: [TimelinePage.Entry], _ script: ByteString, _ stage: TimelinePage.Stage
  ) -> ByteString {
    TimelinePage.text(of: entries, script: script, version: FlowLuaVersion.number, stage)
  }

  private func export(
    _ runs: [RunSpans], to target: SpanExport, _ failures: inout [Failure]
  ) {
    let trace = host?.trace ?? TraceContext()
    let resource = host?.resource ?? TraceResource(title: title, hiding: SecretTexts())
    switch target {
    case .file(let path):
      // The script may have written there.
      if let problem = SpanExport.problem(replacing: path) {
        failures.append(Failure(message: "can't write the spans: \(problem)"))
      } else {
        save(RunOTLP.text(of: runs, trace, resource), path, "spans", &failures)
      }
    case .collector(let url):
      guard !runs.isEmpty, let reason = SpanExport.send(runs, trace, resource, to: url) else {
        return
      }
      failures.append(Failure(message: "can't send the spans: \(reason)", isForgiven: true))
    }
  }

  private func save(
    _ text: ByteString, _ path: ByteString, _ name: ByteString, _ failures: inout [Failure]
  ) {
    if let failure = Self.save(text, path, name) { failures.append(failure) }
  }

  /// Replaces a file, or writes to stdout if the path is `-`; returns a failure, nil for success.
  static func save(_ text: ByteString, _ path: ByteString, _ name: ByteString) -> Failure? {
    if path == "-" {
      Output.write(text, toError: false)
      return nil
    }
    do throws(SystemError) {
      try Files.write(text, to: path, Cancellation())
      return nil
    } catch {
      var reason = error.messageBytes
      if error.code == EINVAL {
        // A pipe or a device isn't replaced, but written to.
        guard let problem = TextFile.write(text, to: path) else { return nil }
        reason = "can't write '\(path)': \(ByteString(problem))"
      }
      return Failure(message: "can't write the \(name): \(reason)")
    }
  }
}
