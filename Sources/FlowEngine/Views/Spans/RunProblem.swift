/// A problem of a run, once for all ops of one name with the same message.
package struct RunProblem {
  package enum Kind: Hashable {
    /// The ops have failed.
    case failed
    /// The ops couldn't be undone.
    case undoFailed
    /// The ops have succeeded after failed attempts; the message is the last failed one's.
    case recovered

    /// Its place in lists.
    fileprivate var rank: Int {
      switch self {
      case .failed: 0
      case .undoFailed: 1
      case .recovered: 2
      }
    }
  }

  package let kind: Kind
  /// The name of the ops.
  package let name: ByteString
  /// The error's message.
  package let message: ByteString
  /// The kind of the error, when the log has it.
  package let errorKind: FlowError.Kind?
  /// How many ops have it.
  package var count = 0
  /// The indices in `RunSpans.spans` of the first ones.
  package var examples: [Int] = []
  /// The index in `RunSpans.undos` of the first undo that has failed.
  package var undo: Int?
  /// How many attempts there were in all.
  package var attempts = 0
  /// How long groups waited for one of these as their last item, while no other item of the group was
  /// executed; in nanoseconds, the longest.
  package var longestHold: Int64 = 0

  /// How many examples are kept.
  private static let limit = 5

  private struct Key: Hashable {
    let kind: Kind
    let name: ByteString
    let message: ByteString
  }

  /// The problems of a run: failures first, the most frequent first. The failure of an op or flow that only
  /// passes the failure of an op within it on isn't one.
  package static func all(of run: RunSpans) -> [RunProblem] {
    let passedOn = failuresPassedOn(in: run)
    let holds = holds(in: run)
    var places: [Key: Int] = [:]
    var problems: [RunProblem] = []
    for (index, span) in run.spans.enumerated() {
      let kind: Kind
      let error: (message: ByteString, kind: FlowError.Kind?)
      if span.outcome == .failed, !passedOn[index], let failure = run.error(of: span) {
        (kind, error) = (.failed, failure)
      } else if span.outcome == .succeeded, span.lastRetry >= 0 {
        (kind, error) = (.recovered, (run.retries[Int(span.lastRetry)].message, nil))
      } else {
        continue
      }
      let name = run.name(of: span)
      let key = Key(kind: kind, name: name, message: error.message)
      let place = places[key] ?? problems.count
      if place == problems.count {
        places[key] = place
        problems.append(
          RunProblem(
            kind: kind, name: name, message: error.message, errorKind: error.kind))
      }
      problems[place].count += 1
      problems[place].attempts += Int(span.retryCount) + 1
      if problems[place].examples.count < limit { problems[place].examples.append(index) }
      if kind == .recovered, let hold = holds[index] {
        problems[place].longestHold = max(problems[place].longestHold, hold)
      }
    }
    addUndos(of: run, &places, to: &problems)
    return problems.enumerated().sorted { a, b in
      let (one, other) = (a.element, b.element)
      if one.kind != other.kind { return one.kind.rank < other.kind.rank }
      return one.count == other.count ? a.offset < b.offset : one.count > other.count
    }.map(\.element)
  }

  /// Undos that have failed, and those that were cut off.
  private static func addUndos(
    of run: RunSpans, _ places: inout [Key: Int], to problems: inout [RunProblem]
  ) {
    for (index, undo) in run.undos.enumerated() where undo.outcome != .running {
      guard let message = undo.error else { continue }
      let name = undo.isOfSpan ? run.name(of: run.spans[Int(undo.parent)]) : undo.name
      let key = Key(kind: .undoFailed, name: name, message: message)
      let place = places[key] ?? problems.count
      if place == problems.count {
        places[key] = place
        problems.append(RunProblem(kind: .undoFailed, name: name, message: message, errorKind: nil))
        problems[place].undo = index
      }
      problems[place].count += 1
      if problems[place].examples.count < limit {
        problems[place].examples.append(Int(undo.parent))
      }
    }
  }

  /// Whether the error of each span comes from a span within it.
  private static func failuresPassedOn(in run: RunSpans) -> [Bool] {
    var passedOn = [Bool](repeating: false, count: run.spans.count)
    for span in run.spans where span.outcome == .failed {
      guard let error = run.error(of: span) else { continue }
      var parent = Int(span.parent)
      while parent >= 0, run.spans[parent].kind == .group { parent = Int(run.spans[parent].parent) }
      if parent >= 0, run.error(of: run.spans[parent])?.message == error.message {
        passedOn[parent] = true
      }
    }
    return passedOn
  }

  /// How long the last item of each group was executed alone at the end, by the index of the item.
  private static func holds(in run: RunSpans) -> [Int: Int64] {
    var last: [Int32: (item: Int, end: Int64, before: Int64)] = [:]
    for (index, span) in run.spans.enumerated() where span.isItem {
      guard let known = last[span.parent] else {
        last[span.parent] = (index, span.end, span.start)
        continue
      }
      if span.end > known.end {
        last[span.parent] = (index, span.end, known.end)
      } else {
        last[span.parent]?.before = max(known.before, span.end)
      }
    }
    var holds: [Int: Int64] = [:]
    for (group, entry) in last where run.spans[Int(group)].childCount > 1 {
      let hold = entry.end - max(entry.before, run.spans[entry.item].start)
      if hold > 0 { holds[entry.item] = hold }
    }
    return holds
  }
}
