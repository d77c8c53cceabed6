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
    let places = stepPlaces
    func close() {
      guard let open, let step = Self.step(of: open.stretches, to: open.end) else { return }
      steps.append(step)
    }
    for stretch in stretches {
      let place = places[stretch.span]
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

  /// For each span the innermost group that encloses it, or the span itself. In one pass, as spans can be
  /// nested to any depth.
  private var stepPlaces: [Int] {
    var groups = [Int](repeating: -1, count: run.spans.count)
    for (index, span) in run.spans.enumerated() {
      // Each span comes after its parent.
      groups[index] = span.kind == .group ? index : span.parent < 0 ? -1 : groups[Int(span.parent)]
    }
    return groups.indices.map { groups[$0] < 0 ? $0 : groups[$0] }
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
