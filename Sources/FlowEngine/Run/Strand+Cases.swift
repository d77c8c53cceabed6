// Which branch a flow takes.
extension Strand {
  /// Looks for the branch to take, from the frame's present one on.
  func decide(_ top: Int) -> Progress {
    let block = frames[top].blueprint.cases[frames[top].block]
    while frames[top].branch < block.branches.count {
      // A predicate may have stopped its own run.
      if stop != nil { return .moved }
      let number = frames[top].branch
      switch block.branches[number].condition {
      case .equals(let key, let value):
        if case .bytes(let held)? = bucket.get(loop.keys.intern(key)), held == value {
          take(number, top)
          return .moved
        }
      case .otherwise:
        take(number, top)
        return .moved
      case .predicate(let predicate):
        if !ask(predicate, top) { return .waiting }
        // It has taken the branch, or failed.
        if frames[top].block < 0 || lastError != nil { return .moved }
        continue
      }
      frames[top].branch += 1
    }
    if stop != nil { return .moved }
    logCase(.noCase, nil, top)
    frames[top].block = -1
    frames[top].isFinishedEarly = true
    frames[top].phase = .finally
    return .moved
  }

  /// Asks a predicate; false while it waits.
  private func ask(_ predicate: any CasePredicate, _ top: Int) -> Bool {
    let run = run
    let made = CallbackCompletion(strand: self, place: { nil }) { completion, error in
      predicate.cancel(run, completion: completion, error)
    }
    completion = made
    isAsked = false
    let isDone = made.begin { predicate.matches(bucket, in: run, completion: $0) }
    loop.stamp = 0
    if isDone { endCallback() } else { askCallback() }
    return isDone
  }

  /// Takes the answer of the present branch's predicate.
  func endPredicate(_ completion: CallbackCompletion, _ top: Int) {
    if let error = completion.error?.attributed(to: "Cases", at: "\(path(of: top))/Cases") {
      let shown = stop?.error(at: frames.count) ?? error
      logCase(.caseFailed, shown.logLine, top)
      lastError = error
      return
    }
    if completion.isMatch {
      take(frames[top].branch, top)
    } else {
      frames[top].branch += 1
    }
  }

  private func take(_ number: Int, _ top: Int) {
    let blueprint = frames[top].blueprint
    let block = blueprint.cases[frames[top].block]
    let branch = block.branches[number]
    logCase(.caseMatched, branch.condition.label(number: number + 1), top)
    let count = blueprint.steps.count
    frames[top].block = -1
    frames[top].next = branch.first
    frames[top].end = block.end(of: number, count: count)
    frames[top].joint = block.end ?? count
  }

  private func logCase(_ kind: LogKind, _ text: ByteString?, _ top: Int) {
    log.append(
      kind, time: loop.stampedNow(), scope: frames[top].scope,
      position: UInt32(truncatingIfNeeded: frames[top].next),
      first: text.map { log.payload($0) } ?? .none)
  }
}
