/// The waits of a run: the executions that determined its duration, one after another.
///
/// It is found from the end of the run backwards. Before the end of a flow or group comes the child that
/// ended last. Before the start of an item comes the item whose end made room for it. Before a step of a graph comes
/// one that it waited for, of several that ended at that time. The times of all parts add up to the duration of the run.
package struct CriticalPath {
  package enum Kind: Hashable {
    /// Ops were executed.
    case execution
    /// The delay before another attempt.
    case retryDelay
    /// An item, or its next attempt, could have started, and nothing else of its group was on the path.
    case queue
    /// A flow or group was busy with something other than its children: callbacks, predicates, collecting.
    case own
    /// An op was undone.
    case undo
  }

  /// All stretches of one kind at the same place of the flow: the items of a group are one part.
  package struct Part {
    package let kind: Kind
    /// The index of the longest execution on the path.
    package internal(set) var longest: Int
    /// How long that one was on the path.
    package internal(set) var longestTime: Int64
    /// How many executions are in it.
    package internal(set) var count: Int
    /// The sum of the stretches, in nanoseconds.
    package internal(set) var time: Int64
  }

  /// A stretch of time on the path.
  package struct Stretch {
    package let kind: Kind
    /// The index of the span.
    package let span: Int
    package let start: Int64
    package let end: Int64
  }

  /// The stretches, the first one first, without gaps.
  package private(set) var stretches: ContiguousArray<Stretch> = []
  /// The parts, in the order of their first stretches.
  package private(set) var parts: [Part] = []

  let run: RunSpans
  /// The ends in each span, in their order.
  private var ends: ContiguousArray<ContiguousArray<End>>
  private var places: [Place: Int32] = [:]
  private var placeOfSpan: [Int: Int32] = [:]
  /// The undos that were executed in each span, in the order of their starts.
  private var undos: [Int: [SpanUndo]] = [:]
  /// The steps that come before one in a graph.
  private var before: [Int32: Set<Int32>] = [:]

  private struct End {
    let time: Int64
    let span: Int32
  }

  private struct Place: Hashable {
    let parent: Int32
    let isItem: Bool
    /// The position of a step; the name of an item.
    let number: Int64
  }

  /// The rest of a walk through a span, from its end backwards.
  private struct Walk {
    let span: Int
    let from: Int64
    /// Everything after this time is on the path already.
    var to: Int64
    /// The next end to look at.
    var next: Int
    /// The child that comes next on the path.
    var follower: Int32 = -1
  }

  /// Finds the path of a run.
  package init(_ run: RunSpans) {
    self.run = run
    ends = ContiguousArray(repeating: [], count: run.spans.count)
    for (undo, span) in zip(run.undos, run.spansAroundUndos()) {
      undos[Int(span), default: []].append(undo)
    }
    for edge in run.edges { before[edge.to, default: []].insert(edge.from) }
    collectEnds()
    walk()
    stretches.reverse()
    merge()
  }

  /// Attempts that were retried end too: in a group another item may start then.
  private mutating func collectEnds() {
    for (index, span) in run.spans.enumerated() where span.parent >= 0 {
      let span32 = Int32(truncatingIfNeeded: index)
      var next = span.lastRetry
      while next >= 0 {
        let retry = run.retries[Int(next)]
        ends[Int(span.parent)].append(End(time: min(retry.time, span.end), span: span32))
        next = retry.previous
      }
      ends[Int(span.parent)].append(End(time: span.end, span: span32))
    }
    // Nearly sorted already, so that this takes little more than one step for each.
    for index in ends.indices where ends[index].count > 1 {
      ends[index].sort { $0.time < $1.time }
    }
  }

  private mutating func walk() {
    var walks = [Walk(span: 0, from: 0, to: run.root.end, next: ends[0].count - 1)]
    while var walk = walks.popLast() {
      guard walk.to > walk.from else { continue }
      var inner: Walk?
      while walk.next >= 0 {
        let end = ends[walk.span][walk.next]
        walk.next -= 1
        let child = run.spans[Int(end.span)]
        // Only what ended before, and took time, has kept the rest waiting.
        guard end.time <= walk.to, end.time > max(child.start, walk.from) else { continue }
        if let cause = cause(of: walk, at: end.time), cause <= walk.next {
          walk.next = cause
          continue
        }
        addOwn(walk.span, from: end.time, to: walk.to)
        let start = max(child.start, walk.from)
        inner = Walk(
          span: Int(end.span), from: start, to: end.time, next: ends[Int(end.span)].count - 1)
        walk.to = start
        walk.follower = end.span
        break
      }
      if let inner {
        walks.append(walk)
        walks.append(inner)
      } else {
        addOwn(walk.span, from: walk.from, to: walk.to)
      }
    }
  }

  /// The place of the end, at a time, of a step that the next one on the path has waited for; nil without one.
  private func cause(of walk: Walk, at time: Int64) -> Int? {
    guard let before = before[walk.follower] else { return nil }
    var place = walk.next + 1
    while place >= 0, ends[walk.span][place].time == time {
      let span = ends[walk.span][place].span
      if before.contains(span), time > max(run.spans[Int(span)].start, walk.from) { return place }
      place -= 1
    }
    return nil
  }

  /// Adds the time of a span in which none of its children was on the path.
  private mutating func addOwn(_ index: Int, from: Int64, to: Int64) {
    guard to > from else { return }
    let span = run.spans[index]
    if span.kind == .flow, let next = stretches.last.flatMap({ child(of: index, around: $0.span) }),
      run.spans[next].queuedLine >= 0, run.spans[next].start == to, run.spans[next].queued < to
    {
      // The step whose start ends the gap has waited for limits.
      let queued = max(from, run.spans[next].queued)
      add(.queue, next, from: queued, to: to)
      return addOwn(index, from: from, to: queued)
    }
    if span.kind == .group {
      // The item whose start ends the gap has waited.
      if let item = stretches.last.flatMap({ child(of: index, around: $0.span) }),
        run.spans[item].queued < to, run.spans[item].start == to
      {
        let queued = max(from, run.spans[item].queued)
        add(.queue, item, from: queued, to: to)
        add(.own, index, from: from, to: queued)
      } else {
        add(.own, index, from: from, to: to)
      }
      return
    }
    let kind: Kind = span.kind == .op ? .execution : .own
    var end = to
    var retry = span.lastRetry
    while retry >= 0, end > from {
      let delay = run.retries[Int(retry)]
      let (first, last) = (max(delay.time, from), min(delay.next, end))
      if last > first {
        let due = max(first, min(delay.due, last))
        addWork(kind, index, from: last, to: end)
        add(.queue, index, from: due, to: last)
        add(.retryDelay, index, from: first, to: due)
        end = first
      }
      retry = delay.previous
    }
    addWork(kind, index, from: from, to: end)
  }

  /// Adds the time of a span outside of its delays: the undos in it are parts of their own.
  private mutating func addWork(_ kind: Kind, _ index: Int, from: Int64, to: Int64) {
    var to = to
    for undo in (undos[index] ?? []).reversed() where undo.start < to && undo.end > from {
      add(kind, index, from: max(undo.end, from), to: to)
      add(.undo, Int(undo.parent), from: max(undo.start, from), to: min(undo.end, to))
      to = max(undo.start, from)
    }
    add(kind, index, from: from, to: to)
  }

  private mutating func add(_ kind: Kind, _ span: Int, from: Int64, to: Int64) {
    guard to > from else { return }
    stretches.append(Stretch(kind: kind, span: span, start: from, end: to))
  }

  /// The child of a span that encloses another span, or is it.
  private func child(of ancestor: Int, around span: Int) -> Int? {
    var span = span
    while span > ancestor {
      let parent = Int(run.spans[span].parent)
      if parent == ancestor { return span }
      span = parent
    }
    return nil
  }

  // MARK: Parts

  private mutating func merge() {
    struct Key: Hashable {
      let place: Int32
      let kind: Kind
    }
    var known: [Key: Int] = [:]
    // The times of single executions in a part.
    var times: [Int: [Int: Int64]] = [:]
    for stretch in stretches {
      let time = stretch.end - stretch.start
      let key = Key(place: place(of: stretch.span), kind: stretch.kind)
      guard let part = known[key] else {
        known[key] = parts.count
        times[parts.count] = [stretch.span: time]
        parts.append(
          Part(
            kind: stretch.kind, longest: stretch.span, longestTime: time, count: 1, time: time))
        continue
      }
      let own = (times[part]?[stretch.span] ?? 0) + time
      if own == time { parts[part].count += 1 }
      times[part, default: [:]][stretch.span] = own
      parts[part].time += time
      if own > parts[part].longestTime {
        parts[part].longestTime = own
        parts[part].longest = stretch.span
      }
    }
  }

  /// The place of each span in the flow.
  func allPlaces() -> [Int32] {
    var path = self
    return run.spans.indices.map { path.place(of: $0) }
  }

  /// The place of a span in the flow: items of a group, and attempts at a flow, share it.
  private mutating func place(of index: Int) -> Int32 {
    var path: [Int] = []
    var next = index
    while next >= 0, placeOfSpan[next] == nil {
      path.append(next)
      next = Int(run.spans[next].parent)
    }
    var place = next >= 0 ? placeOfSpan[next] ?? 0 : -1
    for index in path.reversed() {
      let span = run.spans[index]
      let key = Place(
        parent: place, isItem: span.isItem || span.kind == .op && span.index > 0,
        number: span.isItem ? Int64(span.name) : Int64(span.position) << 32 | Int64(span.name))
      place = places[key] ?? Int32(truncatingIfNeeded: places.count)
      places[key] = place
      placeOfSpan[index] = place
    }
    return place
  }
}

extension CriticalPath {
  /// Stretches of the path one after another that belong to one place of the flow: a group with its items,
  /// or one execution with its retries.
  package struct Step {
    /// The kind of work that took most of the step.
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
