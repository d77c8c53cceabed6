// How an execution leaves it to the keeper of its run whether an op executes, and when it has finished.
extension Execution {
  /// Whether the keeper of the run has a say in an op at a position: not in a machine, whose steps are kept one by
  /// one, and not in what each process executes.
  func isKept(_ op: Op, _ position: UInt32) -> Bool {
    run.keeper != nil && !(op is MachineOp)
      && (position & Blueprint.finallyBit == 0 || position == LogRecord.ownPosition)
      && !isWithinEnding
  }

  /// Whether it belongs to a final step, an undo, a cleanup or a cache key: each process executes these, whatever was
  /// kept.
  var isWithinEnding: Bool {
    var execution = self
    while true {
      if execution.opCursor.isCleaningUp
        || execution.frames.contains(where: { $0.cursor.phase == .finalSteps })
      {
        return true
      }
      guard let group = execution.group else { return false }
      if group.isApart { return true }
      execution = group.parent
    }
  }

  /// The keeping of the op that its context executes, or of the nearest one that executes that, through whatever flows,
  /// groups and runs; nil without one.
  var outerKeeping: (any KeptExecution)? {
    var execution = self
    while true {
      if let keeping = execution.context.keeping { return keeping }
      guard let group = execution.group else { return execution.run.outerKeeping }
      execution = group.parent
    }
  }

  /// Notes an op that is kept as finished for what encloses it, whose undo undoes it too: flows and machines with an undo,
  /// up to the op that executes it. `undone` keeps that it was undone, with all that it has executed.
  func noteKept(undone: @autoclosure () -> UndoneKeeping) {
    guard isWithinUndo else { return }
    let undone = undone()
    var execution = self
    while true {
      if execution.executesUndoableMachine {
        execution.context.makeResources().innerUndone.append(undone)
      }
      for level in execution.frames.indices
      where execution.frames[level].attempt.policy?.undo != nil {
        execution.frames[level].kept.append(undone)
      }
      guard let group = execution.group else { return execution.run.noteKept(undone: undone) }
      execution = group.parent
      if let outer = execution.context.keeping { return outer.noteInner(undone: undone) }
    }
  }

  /// Whether a flow, machine or op around what it executes has an undo.
  var isWithinUndo: Bool {
    var execution = self
    while true {
      if execution.executesUndoableMachine { return true }
      for frame in execution.frames where frame.attempt.policy?.undo != nil { return true }
      guard let group = execution.group else { return execution.run.isWithinUndo }
      execution = group.parent
      if let outer = execution.context.keeping { return outer.isWithinUndo }
    }
  }

  private var executesUndoableMachine: Bool {
    opPolicy?.undo != nil && context.op is MachineOp
  }

  /// Executes an op, unless the keeper knows that it has finished already.
  @inline(never)
  func executeKept(
    _ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int
  ) -> Advance {
    let time = engine.takeStamp()
    if time >= engine.nextLook { look(at: time) }
    if op.mayBeBusy { engine.renewTurn() }
    context.begin(
      op, generation: engine.nextGeneration(), scope: scope, position: position, index: index,
      time: time)
    _ = log.appendStart(time: time, scope: scope, position: position)
    stopRequested = false
    if let error = checking({ op.declarations.inputError(in: bucket) }), !lacksItems(op) {
      if isRehearsing {
        context.end(error)
        return endBody()
      }
      // An attempt reports it, which a policy may repeat: another op may set the key meanwhile.
      setOpPolicy(policy)
      if policy != nil { return beginAttempt() }
      context.end(error)
      return endBody()
    }
    guard let keeper = run.keeper else { return beginKept(policy) }
    if group != nil { for need in op.needs(on: loop) { noteRead(need.key) } }
    return decide(about: work(op, policy, position: position), policy, keeper)
  }

  /// Has the keeper decide about the op of the context.
  private func decide(
    about work: KeptWork, _ policy: OpPolicy?, _ keeper: any RunKeeper
  ) -> Advance {
    if let computation = CacheKeyExecution(for: context.op, work, bucket: bucket, parent: self) {
      computation.setPlace(scope: scope, position: position, index: index)
      child = computation
      return wait(for: computation, work, policy)
    }
    switch keeper.decide(work) {
    case .later(let reading): return wait(for: reading, work, policy)
    case .finished(let known):
      context.logKept(known.line)
      for key in known.reads { noteRead(key) }
      noteUndo(of: context.op, policy, known)
      noteKept(undone: undone(all: [known.innerUndone, known.undone]))
      do {
        try known.restore(context)
        context.end()
      } catch {
        context.end(.from(error))
      }
      return endBody()
    case .fail(let error):
      context.end(error)
      return endBody()
    case .refuse(let error):
      context.end(error.final)
      if let error = context.outcome { failAround(error) }
      return endBody()
    case .execute(let keeping, let line):
      noteExecution()
      if let line { context.log(line) }
      context.keeping = keeping
      guard keeping.keepsStart else { return beginKept(policy) }
      opCursor.keepsStart()
      setOpPolicy(policy)
      return keep { keeping.keepStart(then: $0) } ? startIsKept() : .waiting
    }
  }

  /// Waits for what the decision about an op depends on.
  private func wait(
    for reading: any KeptReading, _ work: KeptWork, _ policy: OpPolicy?
  ) -> Advance {
    undecided = UndecidedOp(work, after: reading)
    setOpPolicy(policy)
    opCursor.reads()
    engine.stamp = 0
    reading.begin { [self] in wake(.op) }
    return .waiting
  }

  /// Has the keeper decide about an op when that is known, unless the op has to stop.
  func decideAgain() -> Advance {
    guard let undecided else { return beginKept(nil) }
    self.undecided = nil
    child = nil
    opCursor.begin()
    let policy = opPolicy
    setOpPolicy(nil)
    let work = undecided.work
    if let error = opStop ?? (work.reading as? CacheKeyExecution)?.takeKey(work) {
      context.end(error)
      return endBody()
    }
    guard let keeper = run.keeper else { return beginKept(policy) }
    return decide(about: work, policy, keeper)
  }

  /// The description of an op that is about to be executed.
  private func work(_ op: Op, _ policy: OpPolicy?, position: UInt32) -> KeptWork {
    // A member of a group executes the op for an item; other items of the group follow.
    let isItem = frames.isEmpty && group?.hasItems == true
    var keys = op.needs(on: loop).map(\.key)
    if isItem {
      for entry in bucket.entries where !keys.contains(entry.key) { keys.append(entry.key) }
    }
    let (run, scope) = (run, context.scope)
    let work = KeptWork(
      name: op.name,
      // Safe: the work is needed only while the context executes the op.
      names: { [unowned context] in
        KeptNames(label: context.label, path: context.path) { context.displayName }
      },
      code: { try op.codeForm() },
      codeOrigin: isItem
        ? KeptWork.CodeOrigin(op: ObjectIdentifier(op), run: run.id, scope: scope) : nil,
      inputs: keys.map { (loop.keys.name(of: $0), keptInput($0)) }, given: keys,
      output: isItem ? group?.keptOutput : nil, data: bucket,
      lineage: run.lineage(scope: scope, position: position), outer: outerKeeping,
      isWithinUndo: policy?.undo != nil || isWithinUndo, isOnce: op.effect == .once,
      cache: undo(of: op, policy) == nil ? op.cache : nil, loop: loop)
    work.setFiles(of: op) { bucket.get($0) }
    if op.declarations.hasStreams {
      let written = op.gives.first(where: \.type.isStream)
      work.passesItems = written != nil || keys.contains { isStream(bucket.get($0)) }
      work.streams = written.flatMap { stepOfGraph(loop.keys.intern($0.name)) }.flatMap {
        $0.graph.takers(of: $0.step)
      }
    }
    if lacksItems(op) { (work.passesItems, work.lacksItems) = (true, true) }
    if work.isOnce {
      work.runs = run.messageRuns
      work.pause = LimitPause { [unowned self] in limitsAround }
      // Nothing of a stream is kept.
      work.requiredOutputs = op.gives.filter { $0.type.isStream || !$0.type.isOptional }.map(\.name)
    }
    return work
  }

  /// The value of an input; of a stream only that it is one.
  private func keptInput(_ key: DataKey) -> FlowValue? {
    let value = bucket.get(key)
    return isStream(value) ? .bytes("stream") : value
  }

  private func isStream(_ value: FlowValue?) -> Bool {
    if case .opaque(let opaque)? = value { opaque is any StreamValue } else { false }
  }

  /// Whether a rehearsal doesn't know items that an op takes: their writer wasn't executed.
  private func lacksItems(_ op: Op) -> Bool {
    isRehearsing && lacksItems(op.needs(on: loop).map(\.key))
  }

  /// Whether one of these keys has, in a rehearsal, such items.
  func lacksItems(_ keys: [DataKey]) -> Bool {
    guard isRehearsing else { return false }
    return keys.contains {
      if case .opaque(let opaque)? = bucket.get($0) {
        (opaque as? ItemReader)?.isLost == true
      } else {
        false
      }
    }
  }

  /// An op is executed that isn't kept, other than a machine, whose steps are.
  func noteExecution(of op: Op) {
    if !(op is MachineOp) { noteExecution() }
  }

  /// An op is executed: the items that it belongs to are, too.
  func noteExecution() {
    var execution = self
    while !execution.hasExecuted {
      execution.hasExecuted = true
      guard let group = execution.group else {
        run.hasExecuted = true
        return
      }
      execution = group.parent
    }
  }

  /// An op reads a key: each op that executes it, through whatever flows and groups, does that, too.
  @inline(never)
  func noteRead(_ key: DataKey) {
    var execution = self
    while true {
      execution.context.keeping?.willRead(key, in: execution.bucket)
      guard let group = execution.group, !group.isApart else { return }
      // An item reads from the data around it what it hasn't itself.
      if group.separatesData, execution.bucket.hasOwn(key) { return }
      execution = group.parent
    }
  }

  /// An op sets a key: each op that executes it over the same data does that, too.
  @inline(never)
  func noteSet(_ key: DataKey) {
    var execution = self
    while true {
      execution.context.keeping?.willSet(key)
      guard let group = execution.group, !group.hasItems, !group.isApart else { return }
      group.noteSet(key, by: execution)
      execution = group.parent
    }
  }

  /// The keys that steps beside it have set, with the values before. Whether they had done so when it began is a
  /// matter of chance, and of what was kept.
  var changesBeside: [DataKey: FlowValue?] {
    var changes: [DataKey: FlowValue?] = [:]
    var items: [DataBucket] = []
    var execution = self
    while true {
      let group = execution.group
      if group?.isApart == true { return changes }
      for (key, before) in group?.changes(beside: execution) ?? run.changesBeside
      where !items.contains(where: { $0.hasOwn(key) }) {
        changes.updateValue(before, forKey: key)
      }
      guard let group else { return changes }
      // An item hides from what it executes the keys that it has itself.
      if group.hasItems { items.append(execution.bucket) }
      execution = group.parent
    }
  }

  /// Has an op that an earlier process has finished listed for its undo, after those that it had executed over its
  /// data.
  private func noteUndo(of op: Op, _ policy: OpPolicy?, _ known: KnownEnd) {
    let undos = known.undos.isEmpty ? [] : restored(known.undos, of: op)
    guard policy?.undo != nil || !undos.isEmpty else { return }
    setOpPolicy(policy)
    let resources = context.makeResources()
    resources.undos += undos
    resources.undone = known.undone
    resources.innerUndone = [known.innerUndone]
    resources.keptLineage = known.lineage
  }

  /// The undo of an op at its place, or of the op that it executes over its own data.
  private func undo(of op: Op, _ policy: OpPolicy?) -> (any OpBody)? {
    var (undo, inner) = (policy?.undo, op.body?.inner)
    while undo == nil, let next = inner { (undo, inner) = (next.undo, next.body?.inner) }
    return undo
  }

  private func beginKept(_ policy: OpPolicy?) -> Advance {
    setOpPolicy(policy)
    return beginAttempt()
  }

  /// Continues an op whose start is kept, or can't be.
  func startIsKept() -> Advance {
    if let error = opStop ?? context.outcome {
      // Its body wasn't called.
      if context.outcome == nil {
        let end = KeptEnd(error: error, attempt: 0, data: nil, outputs: [])
        context.keeping?.keepEnd(end) { _ in }
      }
      context.keeping = nil
      context.end(error)
      return endBody()
    }
    return beginAttempt()
  }

  /// Whether the end of the op is kept; else `wake` continues the op when it is.
  func keepEnd(_ keeping: any KeptExecution) -> Bool {
    opCursor.keepsEnd()
    let end = KeptEnd(
      error: context.outcome, attempt: context.attempt, data: bucket, outputs: [],
      undos: context.outcome == nil ? keptUndos : [])
    let hasSucceeded = context.outcome == nil
    let isKept = keep { then in
      keeping.keepEnd(end) { [self] problem in
        // Its effect is there: the flow, which fails now, undoes it.
        if problem != nil, hasSucceeded { listOp() }
        if problem == nil, hasSucceeded {
          noteKept(undone: undone(all: [keeping.keepInnerUndone, keeping.keepUndone]))
        }
        then(problem)
      }
    }
    if !isKept, frames.isEmpty, !keeping.keepsStart { group?.memberIsBeingKept(self) }
    return isKept
  }

  /// Fails all that encloses an op whose end the keeper doesn't know, or can't keep, whatever policies say about
  /// failures: the run continues only when that is settled.
  func failAround(_ error: FlowError) {
    // The outermost first, so that the stop isn't a failure for the groups in between.
    run.owner?.failOwner(error)
    var around: [Execution] = []
    var execution = self
    while let group = execution.group {
      if group.stop == nil { group.stop = error }
      execution = group.parent
      around.append(execution)
    }
    for execution in around.reversed() { execution.failAll(error) }
  }

  /// Fails the flow or op of an execution because of an op within it.
  private func failAll(_ error: FlowError) {
    let level = group == nil ? 0 : Stop.everything
    request(Stop(level: level, error: error, inner: error.asReason))
  }

  /// Fails the flow or op of an execution, and all that encloses it.
  func failEverything(_ error: FlowError) {
    failAround(error)
    failAll(error)
  }

  /// Performs something that may end later; returns whether it has ended.
  private func keep(_ body: (@escaping (FlowError?) -> Void) -> Void) -> Bool {
    var isDone = false
    var isInCall = true
    body { [self] error in
      if let error {
        context.replaceOutcome(error.final)
        if let error = context.outcome { failAround(error) }
      }
      isDone = true
      if !isInCall { wake(.op) }
    }
    isInCall = false
    if !isDone { engine.stamp = 0 }
    return isDone
  }
}

extension KnownEnd {
  /// Gives the data what the op had changed and set.
  func restore(_ context: OpContext) throws {
    for (key, value) in changes { try context.bucket.refill(key, value) }
    for (key, value) in writes { context.set(key, value) }
  }
}

extension FlowError {
  /// The error for the end of a kept run: no policy repeats what has failed.
  var final: FlowError { with { $0.isRetriable = false } }
}

// How an execution rehearses a run, whose keeper then decides about each op whether it is executed.
//
// The keeper takes what it knows of an op for its end, and refuses what it doesn't know. An op that isn't kept, such as
// a final step, isn't executed; nor are callbacks, retries and undos. An op that needs no refused one is
// rehearsed as well: the other items of its group, and what is executed at the same time. Functions that decide, such
// as conditions of cases and transitions of machines, are called.
//
// An op that the keeper has executed all the same is executed with all that belongs to it.
extension Execution {
  /// Whether it rehearses: its run is a rehearsal, and no op that is executed encloses it.
  var isRehearsing: Bool {
    guard run.isRehearsal else { return false }
    var execution = self
    while let group = execution.group {
      // Only an op that is executed executes others in its own place.
      if group is InnerExecution { return false }
      execution = group.parent
    }
    return true
  }

  /// Whether a rehearsal does nothing for an op that isn't kept. The steps of a machine are kept.
  func isLeftOut(_ op: Op) -> Bool {
    guard isRehearsing, !(op is MachineOp) else { return false }
    lastError = nil
    return true
  }
}

extension OpContext {
  /// Whether it belongs to a final step, an undo or a cleanup, perhaps of the op that has started its run.
  package var isWithinEnding: Bool {
    guard let execution else { return false }
    return execution.run.isWithinEnding || execution.isWithinEnding
  }

  /// Whether it can wait for messages: each process executes what ends a kept run, so no later one would continue a wait.
  package var mayWaitForMessages: Bool { !isWithinEnding || !run.messageBox.store.isShared }

  /// Whether the op is rehearsed, and not executed.
  var isRehearsed: Bool { keeping == nil && execution?.isRehearsing == true }
}

extension KeptWork {
  /// Sets which files of an op count, by its declarations.
  func setFiles(of op: Op, value: (DataKey) -> FlowValue?) {
    guard op.declarations.hasFiles else { return }
    let names = inputs.map(\.name)
    for (key, type) in op.needs(on: loop) where type.hasFiles {
      guard let value = value(key), let input = names.firstIndex(of: loop.keys.name(of: key)) else {
        continue
      }
      inputFiles.append((input, type.files(in: value)))
    }
    outputFiles = op.gives(on: loop).filter { $0.type.hasFiles }
  }
}
