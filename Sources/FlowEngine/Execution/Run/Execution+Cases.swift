// How an execution chooses the branch of a flow.
extension Execution {
  /// Tests the condition of a branch.
  func test(_ branch: Int, of block: Int, _ top: Int) -> Advance {
    switch frames[top].blueprint.cases[block].branches[branch].condition {
    case .equals(let key, let value):
      if run.keeper != nil { noteRead(loop.keys.intern(key)) }
      if case .bytes(let held)? = bucket.get(loop.keys.intern(key)), held == value {
        takeBranch(branch, of: block, top)
      } else {
        frames[top].cursor.skipBranch()
      }
    case .otherwise: takeBranch(branch, of: block, top)
    case .predicate(let predicate): return call(predicate, top)
    }
    return .moved
  }

  private func call(_ predicate: any CasePredicate, _ top: Int) -> Advance {
    let run = run
    // What a predicate reads isn't known.
    if run.keeper != nil { for entry in bucket.entries { noteRead(entry.key) } }
    let made = CallbackCompletion(owner: self, place: { nil }) { completion, error in
      predicate.cancel(run, completion: completion, error)
    }
    completion = made
    stopRequested = false
    let isDone = made.begin { predicate.matches(bucket, in: run, completion: $0) }
    engine.stamp = 0
    guard isDone else {
      stopCallback()
      return .waiting
    }
    endCallback()
    return .moved
  }

  /// Takes the answer of the present branch's predicate.
  func endPredicate(_ completion: CallbackCompletion, _ top: Int) {
    if let error = completion.error?.attributed(to: "Cases", at: "\(path(of: top))/Cases") {
      let shown = stop?.error(at: frames.count) ?? error
      logCase(.caseFailed, shown.logLine, top)
      lastError = error
      return
    }
    if completion.isMatch, let block = frames[top].cursor.block {
      takeBranch(frames[top].cursor.branch, of: block, top)
    } else {
      frames[top].cursor.skipBranch()
    }
  }

  private func takeBranch(_ number: Int, of block: Int, _ top: Int) {
    let blueprint = frames[top].blueprint
    let block = blueprint.cases[block]
    let branch = block.branches[number]
    logCase(.caseMatched, branch.condition.label(number: number + 1), top)
    let count = blueprint.steps.count
    frames[top].cursor.takeBranch(
      branch.first..<block.end(of: number, count: count), joint: block.end ?? count)
  }

  func logCase(_ kind: LogKind, _ text: ByteString?, _ top: Int) {
    log.append(
      kind, time: engine.stampedNow(), scope: frames[top].scope,
      position: UInt32(truncatingIfNeeded: frames[top].cursor.next),
      first: text.map { log.payload($0) } ?? .none)
  }
}
