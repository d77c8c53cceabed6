internal import FlowEngine
internal import Glibc

/// What the long options want to know of the runs that a script starts, and what they print of it.
final class Monitors: RunMonitor {
  private let options: LongOptions
  private let messages: Messages
  private let graphs = GraphCollection()
  /// Nil where nobody would see it, or wants to.
  let progress: ProgressDisplay?
  /// How many runs were checked instead of executed.
  private var checkCount = 0
  /// Whether something went wrong that decides about the exit status.
  private(set) var hasFailed = false
  private var isFinished = false

  init(_ options: LongOptions, _ messages: Messages) {
    self.options = options
    self.messages = messages
    progress = options.showsProgress && ProgressDisplay.isPossible ? ProgressDisplay() : nil
  }

  /// Begins to watch a loop, if an option wants that.
  func watch(_ loop: EventLoop) {
    loop.progressMonitor = progress
    guard options.summary != nil || options.graph != nil || options.checks else { return }
    loop.runMonitors.append(self)
    guard options.graph != nil else { return }
    Self.last = self
    // Scripts end by os.exit as well.
    atexit { Monitors.last?.finish() }
  }

  // Unsafe: set once, before the process exits, which is when it is read; both on the main thread.
  private nonisolated(unsafe) static var last: Monitors?

  func runBegins(_ run: Run) -> Bool {
    if options.graph != nil { graphs.add(run) }
    guard options.checks else { return true }
    printCheck(of: run)
    return false
  }

  func runEnded(_ run: Run) {
    // One that was checked only has nothing to sum up.
    if run.isSkipped { return }
    switch options.summary {
    case nil: break
    case .text: Output.write(run.summary(), toError: true)
    case .json: Output.write(RunJSON.text(of: run) + "\n", toError: true)
    }
  }

  private func printCheck(of run: Run) {
    checkCount += 1
    var text: ByteString = ""
    for finding in run.check() {
      if finding.severity == .error { hasFailed = true }
      text = text + "[\(run.name)] \(finding.severity.name): \(finding.message)\n"
    }
    Output.write(text + "[\(run.name)] plan:\n" + run.plan(), toError: false)
  }

  /// Ends the process where the script asks what became of a run that was checked only: whatever it
  /// makes of that would be made up. No code of the script runs any more, no cleanup either.
  func end(because run: Run, isNeededAt place: ByteString) -> Never {
    let what = checkCount == 1 ? "1 flow" : "\(checkCount) flows"
    let position = place.bytes.isEmpty ? "the script" : place
    Output.write(
      "checked \(what); \(position) needs the outcome of '\(run.name)'\n", toError: false)
    finish()
    EventLoop.endPrograms()
    exit(hasFailed ? 1 : 0)
  }

  /// Writes the graph, if one is wanted; further calls do nothing.
  func finish() {
    progress?.end()
    guard let file = options.graph, !isFinished else { return }
    isFinished = true
    do throws(GraphFileWriter.Failure) {
      try GraphFileWriter.write(graphs, to: file)
    } catch {
      messages.say(error.message)
      hasFailed = true
    }
  }
}
