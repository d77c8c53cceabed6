internal import CFlowSystem
internal import FlowEngine

/// Prints the progress of runs on stderr as lines, for logs: `--progress=plain`. There is one for each failure, and
/// every ten seconds one for the execution that matters most.
final class PlainProgress: ProgressTree.Observer {
  private var tree: ProgressTree?
  private var loop: EventLoop?
  private let lines: ProgressLines
  /// When the first run that is in progress started, and the time of the next line, in nanoseconds of the
  /// loop's clock.
  private var began: Int64?
  private var due: Int64 = 0

  /// The time between two lines.
  private static let interval: Int64 = 10_000_000_000

  init(_ color: LongOptions.Color) {
    lines = ProgressLines(hasColors: color == .always)
  }

  /// Begins to show the runs of a loop.
  func watch(_ loop: EventLoop) {
    let tree = ProgressTree(of: loop)
    tree.observer = self
    self.tree = tree
    self.loop = loop
    loop.eventSinks.append(tree)
    // On a virtual clock time passes between two events only.
    if !loop.timeSource.isVirtual { loop.onRest = { [unowned self] in rest() } }
  }

  func progressChanged(at time: Int64) -> Int64 {
    begin(at: time)
    // A virtual clock at its end stands still: no next line is due.
    if time >= due, due != .max { print(at: time) }
    return due
  }

  private func rest() -> Int64? {
    guard let tree, let loop, !tree.isEmpty else { return nil }
    let time = loop.now()
    begin(at: time)
    if time >= due { print(at: time) }
    return due - time
  }

  private func begin(at time: Int64) {
    if began != nil { return }
    began = time
    due = time.later(by: Self.interval)
  }

  func progressNoticed(_ notice: ProgressNotice) {
    guard case .failure = notice else { return }
    Output.write(styled: lines.lines(notice), toError: true)
  }

  func progressEnded() {
    began = nil
    tree?.awaitChange()
  }

  private func print(at time: Int64) {
    let began = began ?? time
    due = time.later(by: Self.interval - (time - began) % Self.interval)
    guard let (row, others) = tree?.mainRow() else { return }
    let passed = ProgressLines.duration(Double(time - began) / 1e9)
    Output.write(
      styled: ByteString("[\(passed)] \(lines.plainLine(row, others: others))\n"), toError: true)
  }
}
