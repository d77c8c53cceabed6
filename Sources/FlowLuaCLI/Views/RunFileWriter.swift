internal import FlowEngine
internal import FlowScripting
internal import FlowSystem

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
      var reason = error.message
      if error.code == EINVAL {
        // A pipe or a device isn't replaced, but written to.
        guard let problem = TextFile.write(text, to: path) else { return nil }
        reason = "can't write '\(path)': \(ByteString(problem))"
      }
      return Failure(message: "can't write the \(name): \(reason)")
    }
  }
}

/// The summaries of all runs in one file, which is replaced when the script ends: `--summary=json:FILE`.
struct SummaryFile {
  private let file: LongOptions.SummaryFile
  /// The text to write at the end: empty, unless the new file couldn't be made.
  private var content: [UInt8] = []
  /// The new file; nil before the first run has ended, and for what can't be replaced: stdout, a pipe, a folder
  /// that isn't there any more.
  private var replacement: FileReplacement?
  private var problem: SystemError?
  private var hasBegun = false

  init(_ file: LongOptions.SummaryFile) {
    self.file = file
    // Like `RunFileWriter`.
    _ = TemporaryPaths.shared
  }

  /// Adds a part of the summary of a run that has ended.
  mutating func add(_ summary: ByteString) {
    if !hasBegun {
      hasBegun = true
      replacement = file.path == "-" ? nil : try? FileReplacement(of: file.path)
    }
    guard let replacement else {
      content += summary.bytes
      return
    }
    guard problem == nil else { return }
    do throws(SystemError) {
      try replacement.append(summary)
    } catch {
      problem = error
    }
  }

  /// Writes the file; returns a failure, nil for success.
  func write() -> RunFileWriter.Failure? {
    guard let replacement else {
      return RunFileWriter.save(ByteString(content), file.path, "summaries")
    }
    do throws(SystemError) {
      if let problem { throw problem }
      try replacement.commit()
      return nil
    } catch {
      return RunFileWriter.Failure(message: "can't write the summaries: \(error.message)")
    }
  }
}

/// Writes the graph for `--graph`.
enum GraphFileWriter {
  struct Failure: Error {
    let message: ByteString
  }

  static func write(
    _ graphs: GraphCollection, to file: LongOptions.GraphFile
  ) throws(Failure) {
    switch file.form {
    case .dot: try save(graphs.dot(), file.path)
    case .mmd: try save(graphs.mermaid(), file.path)
    case .svg: try save(try draw(graphs.dot(), file.path), file.path)
    }
  }

  private static func save(_ text: ByteString, _ path: ByteString) throws(Failure) {
    if let reason = TextFile.write(text, to: path) {
      throw Failure(message: "can't write the graph to '\(path)': \(reason)")
    }
  }

  /// Runs Graphviz to draw a graph.
  private static func draw(_ dot: ByteString, _ path: ByteString) throws(Failure) -> ByteString {
    let loop = FlowEventLoop()
    let request = ProcessRequest(["dot", "-Tsvg"], stdin: dot)
    var outcome: Result<ProcessResult, FlowError>?
    loop.startProcess(request) { outcome = $0 }
    _ = loop.turn { outcome != nil }
    switch outcome {
    case .success(let result)? where result.status == 0 && result.signal == nil:
      return result.stdout
    case .success(let result)?:
      throw Failure(
        message: "can't draw '\(path)': Graphviz' dot failed: \(result.stderr)")
    case .failure(let error)?:
      throw Failure(
        message: """
          can't draw '\(path)': \(error.message); .svg needs Graphviz (on Debian: apt install \
          graphviz), .dot and .mmd need nothing
          """)
    case nil: throw Failure(message: "can't draw '\(path)'")
    }
  }
}
