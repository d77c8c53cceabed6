extension CriticalPath {
  /// Stretches of the path one after another that belong to one place of the flow: a group with its items,
  /// or one execution with its retries.
  package struct Step {
    /// What took most of the step.
    package let kind: Kind
    /// The index of the execution that took the longest part of it.
    package let longest: Int
    /// How many executions are in it.
    package let count: Int
    package let start: Int64
    package internal(set) var end: Int64
    /// How long it was on the path without executing anything: in delays before attempts, and queued.
    package let waited: Int64
  }

  /// The steps, in order and without gaps. Stretches of less than a thousandth of the run's time belong to
  /// the step before.
  package var steps: [Step] {
    var steps: [Step] = []
    var open: (place: Int, isUndo: Bool, stretches: [Stretch], end: Int64)?
    let shortest = run.root.duration / 1000
    func close() {
      guard let open, let step = Self.step(of: open.stretches, to: open.end) else { return }
      steps.append(step)
    }
    for stretch in stretches {
      let place = place(ofStep: stretch.span)
      let isUndo = stretch.kind == .undo
      if open?.place == place, open?.isUndo == isUndo {
        open?.stretches.append(stretch)
        open?.end = stretch.end
      } else if open != nil, stretch.end - stretch.start < shortest {
        open?.end = stretch.end
      } else {
        close()
        open = (place, isUndo, [stretch], stretch.end)
      }
    }
    close()
    return steps
  }

  /// The innermost group that encloses a span, or the span itself.
  private func place(ofStep index: Int) -> Int {
    var span = index
    while span >= 0 {
      if run.spans[span].kind == .group { return span }
      span = Int(run.spans[span].parent)
    }
    return index
  }

  private static func step(of stretches: [Stretch], to end: Int64) -> Step? {
    guard let first = stretches.first else { return nil }
    var times: [Int: Int64] = [:]
    var kinds: [Kind: Int64] = [:]
    for stretch in stretches {
      kinds[stretch.kind, default: 0] += stretch.end - stretch.start
      if stretch.kind != .own { times[stretch.span, default: 0] += stretch.end - stretch.start }
    }
    // An execution and its retries are work, unless nothing but waiting is on the path.
    let work = kinds[.execution, default: 0]
    let most = kinds.max { $0.value < $1.value }?.key ?? first.kind
    let longest = times.max { a, b in a.value == b.value ? a.key > b.key : a.value < b.value }
    return Step(
      kind: work > 0 && most != .own ? .execution : most, longest: longest?.key ?? first.span,
      count: max(1, times.count), start: first.start, end: end,
      waited: kinds[.retryDelay, default: 0] + kinds[.queue, default: 0])
  }
}
