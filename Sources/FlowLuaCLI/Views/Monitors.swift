internal import FlowEngine
internal import FlowHTTP
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// Observes the runs that a script starts for the long options, and prints their output.
final class Monitors: RunMonitor {
  private let options: LongOptions
  private let messages: Messages
  /// The name of the script.
  private let title: ByteString
  private let graphs = GraphCollection()
  /// Nil unless an option needs it.
  private var files: RunFileWriter?
  /// Nil if no terminal would show it, or if it is disabled.
  let progress: ProgressDisplay?
  private let plainProgress: PlainProgress?
  private let events: EventFile?
  private var summaries: SummaryFile?
  /// The runs that `--summary` shows and that haven't ended, by their order.
  private var openRuns: [ObjectIdentifier: (place: Int, run: Run)] = [:]
  private var runCount = 0
  /// The number of runs that were checked instead of executed.
  private var checkCount = 0
  /// Whether something failed that determines the exit status.
  private(set) var hasFailed = false
  private var isFinished = false

  /// `title` is the name of the script.
  init(
    _ options: LongOptions, _ messages: Messages, title: ByteString, showsProgress: Bool
  ) throws(EventFile.Failure) {
    self.options = options
    self.messages = messages
    self.title = title
    files = RunFileWriter(options, title: title)
    events =
      if let path = options.events { try EventFile(path, messages) } else { nil }
    summaries = options.summaryFile.map { SummaryFile($0) }
    progress =
      options.progress == .auto && showsProgress && ProgressDisplay.isPossible
      ? ProgressDisplay(options.color) : nil
    plainProgress = options.progress == .plain && showsProgress ? PlainProgress(options.color) : nil
  }

  /// Lets the requested files be written also where the script ends by os.exit, even before it uses flow.
  func finishAtExit() {
    guard options.graph != nil || events != nil || showsSummaries || files != nil else { return }
    Self.last = self
    atexit { Monitors.last?.finish() }
  }

  /// Begins to observe the loop of a host, if an option requires it.
  func watch(_ host: ScriptHost) {
    let loop = host.loop
    host.reporting.summaryOptions = summaryOptions
    continueTrace(on: host)
    progress?.watch(loop)
    plainProgress?.watch(loop)
    if let events { loop.eventSinks.append(events) }
    if options.follows { loop.eventSinks.append(FollowedLines.sink(summaryOptions, options.color)) }
    if showsSummaries || options.graph != nil || options.checks || files != nil {
      loop.runMonitors.append(self)
    }
    files?.watch(host)
    if options.trace != nil { host.logsWaits = true }
  }

  /// Lets programs and requests of ops continue a trace: the environment's, or one that `--otlp` begins.
  private func continueTrace(on host: ScriptHost) {
    host.serviceName = title.fileName
    let incoming = environment("TRACEPARENT").flatMap {
      TraceContext(traceparent: $0, state: environment("TRACESTATE"))
    }
    host.loop.trace = incoming ?? (options.otlp == nil ? nil : host.trace)
  }

  // Unsafe: set once, before the process exits and reads it; both on the main thread.
  private nonisolated(unsafe) static var last: Monitors?

  func runBegins(_ run: Run) -> Bool {
    if options.graph != nil { graphs.add(run) }
    guard options.checks else {
      files?.runBegins(run)
      if showsSummaries {
        runCount += 1
        openRuns[ObjectIdentifier(run)] = (runCount, run)
      }
      return true
    }
    printCheck(of: run)
    return false
  }

  func runEnded(_ run: Run) {
    openRuns[ObjectIdentifier(run)] = nil
    // A run that was only checked or rehearsed has no summary.
    if !run.hasOutcome { return }
    files?.runEnded(run)
    writeSummaries(of: run, messages.host)
  }

  private var showsSummaries: Bool { options.summary != nil || options.summaryFile != nil }

  /// `host` is nil where its Lua state may be gone: then the data of the run are left out.
  private func writeSummaries(of run: Run, _ host: ScriptHost?) {
    if let form = options.summary {
      writeSummary(of: run, form, host) { Output.write($0, toError: true) }
    }
    if let file = options.summaryFile {
      writeSummary(of: run, file.form, host) { summaries?.add($0) }
    }
  }

  private var summaryOptions: SummaryOptions {
    SummaryOptions(time: options.time == .iso ? .iso : .clock)
  }

  private func writeSummary(
    of run: Run, _ form: LongOptions.SummaryForm, _ host: ScriptHost?,
    _ write: (ByteString) -> Void
  ) {
    switch form {
    case .text: write(run.summary(summaryOptions))
    case .json: RunJSON.write(run, host, write)
    }
  }

  private func printCheck(of run: Run) {
    checkCount += 1
    var text: ByteString = ""
    for finding in run.check() {
      if finding.severity == .error { hasFailed = true }
      let place = messages.host?.place(of: finding, in: run)
      if options.printsJSON {
        text = text + json(finding, place, run)
      } else {
        let start = place.map { "\($0.file):\($0.line)" as ByteString } ?? title
        text = text + "\(start): \(finding.severity.name): \(finding.message)\n"
      }
    }
    if !options.printsJSON { text = text + "[\(run.name)] plan:\n" + run.plan() }
    Output.write(run.loop.secrets.redacted(text), toError: false)
  }

  /// A finding as a line of JSON.
  private func json(
    _ finding: FlowFinding, _ place: (file: ByteString, line: Int)?, _ run: Run
  ) -> ByteString {
    let secrets = run.loop.secrets
    var json = JSONText()
    json.append(raw: "{")
    json.field("file", place?.file ?? title)
    if let line = place?.line { json.field("line", line) }
    json.field("severity", finding.severity.name)
    json.field("flow", secrets.redacted(run.name))
    json.field("op", secrets.redacted(finding.op))
    json.field("message", secrets.redacted(finding.message))
    json.append(raw: "}\n")
    return ByteString(json.bytes)
  }

  /// Ends the process where the script uses the outcome of a run that was only checked, which would be
  /// invented, or would have an effect. No code of the script runs any more, not even a cleanup.
  func endCheck(at place: ByteString, because reason: ByteString) -> Never {
    let what = checkCount == 1 ? "1 flow" : "\(checkCount) flows"
    let position = place.isEmpty ? "the script" : place
    // Lines of JSON are for programs.
    Output.write("checked \(what); \(position) \(reason)\n", toError: options.printsJSON)
    if let host = messages.host, messages.reportFailures(of: host) { hasFailed = true }
    finish()
    FlowEventLoop.endPrograms()
    exit(hasFailed ? 1 : 0)
  }

  /// Writes the requested files; further calls do nothing.
  func finish() {
    progress?.end()
    if let events, !events.close() { hasFailed = true }
    writeRuns()
    guard let file = options.graph, !isFinished else { return }
    isFinished = true
    do throws(GraphFileWriter.Failure) {
      try GraphFileWriter.write(graphs, to: file)
    } catch {
      fail(error.message)
    }
  }

  /// Writes the files of `--summary`, `--report`, `--trace` and others, unless that has been done.
  func writeRuns() {
    for (_, run) in openRuns.values.sorted(by: { $0.place < $1.place }) where !run.isSkipped {
      writeSummaries(of: run, nil)
    }
    openRuns = [:]
    guard files != nil || summaries != nil else { return }
    progress?.end()
    let failures = [summaries?.write()].compactMap { $0 } + (files?.write() ?? [])
    summaries = nil
    files = nil
    for failure in failures {
      if failure.isForgiven { messages.say(failure.message) } else { fail(failure.message) }
    }
  }

  private func fail(_ message: ByteString) {
    messages.say(message)
    hasFailed = true
  }
}
