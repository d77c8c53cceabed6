/// A machine that is executing. It continues as far as it can without waiting, one phase after
/// another. The runs of its steps are separate works of the loop, so that no depth of nesting
/// recurses.
final class MachineExecution: Work, TaskObserver, Abandonable {
  private enum Phase {
    /// The present step is to be performed.
    case perform
    /// The step's result is to be reduced.
    case reduce
    /// The transition after the step is to be found.
    case decide
    case ended
  }

  let blueprint: MachineBlueprint
  // Unowned, because retains would cost as much as the rest. Safe: the blueprint holds both.
  unowned(unsafe) let logic: any MachineLogic
  private unowned(unsafe) let table: TransitionTable
  private let call: MachineCall
  let loop: FlowEventLoop
  // Cleared at the end, so that the context can be reused.
  private var context: OpContext?

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) private var phase = Phase.perform
  @exclusivity(unchecked) private(set) var step = 0
  @exclusivity(unchecked) var state: FlowValue = .null
  @exclusivity(unchecked) private var result: FlowValue = .null
  /// How the present step was entered.
  @exclusivity(unchecked) private var transition: MachineTransition<Int> = .stay
  @exclusivity(unchecked) private var history = MachineHistory()
  @exclusivity(unchecked) private var transitionCount = 0
  /// The run of the present step.
  @exclusivity(unchecked) private(set) var child: Run?
  /// Why it has to stop, and whether the thing it waits for has been stopped.
  @exclusivity(unchecked) private var stop: FlowError?
  @exclusivity(unchecked) private var hasPassedStop = false
  /// Whether `proceed` is running.
  @exclusivity(unchecked) private var isProceeding = false
  /// How many steps functions have performed, in a kept run.
  @exclusivity(unchecked) private var visitCount: UInt64 = 0
  /// In a kept run, what steps beside it had set when it started, with the values before.
  @exclusivity(unchecked) private var changesBeside: [DataKey: FlowValue?] = [:]
  /// Whether the keeper of its run is writing the outcome of the present step.
  @exclusivity(unchecked) private var isKeeping = false
  /// The present step, about which the keeper has to be asked again after a reading.
  private var undecided: KeptWork?
  /// Whether a job that continues it is scheduled.
  @exclusivity(unchecked) private var isEnqueued = false
  private let lines: TransitionLines
  /// Whether its functions may be busy for long, and when other jobs of the loop run although they don't wait. Most machines
  /// end within their first turn, which is longer; a virtual clock stands still meanwhile.
  private let mayBeBusy: Bool
  @exclusivity(unchecked) private var turnEnd = Int64.max
  @exclusivity(unchecked) private var turnLeft = firstTurn
  private static let firstTurn = 10_000
  /// In nanoseconds.
  private static let firstTime: Int64 = 100_000_000
  private static let turnLength = 1000
  /// The state in the latest line of the log: a scalar's payload, or the text of other values.
  @exclusivity(unchecked) var shownState = Payload.none
  @exclusivity(unchecked) var shownText: ByteString?
  /// Called with the decision after the first step, instead of making the transition.
  private var decide: ((MachineDecision<Int, FlowValue, FlowValue>) -> Void)?
  /// Keys that a step's run has set to secret values.
  var secretNames: Set<ByteString> = []

  init(_ blueprint: MachineBlueprint, _ context: OpContext) {
    self.blueprint = blueprint
    logic = blueprint.logic
    table = blueprint.table
    self.context = context
    lines = TransitionLines(blueprint.logic)
    mayBeBusy = blueprint.logic.mayBeBusy
    let unbound = MachineCall(context)
    call = unbound
    loop = context.loop
    super.init(scheduler: loop.engine)
    unbound.bind(self)
  }

  // MARK: Start and end

  /// Starts, in the body of the op; returns whether it has ended.
  func start(_ entry: MachineEntry?) -> CallState {
    guard let context else { return .finished }
    do {
      let given = try entry.flatMap { try logic.convertedState($0.state) }
      state = try given ?? logic.state(of: context.bucket)
      if context.run.keeper != nil, logic.hasPlainStates {
        changesBeside = context.execution?.changesBeside ?? [:]
      }
      decide = entry?.decide
    } catch {
      end(.from(error))
      return .finished
    }
    for earlier in entry?.history ?? [] { history.push(earlier) }
    step = entry?.step ?? entry?.history.last ?? blueprint.definition.start
    // The history of a run ends with the present step.
    if history.count == 0 || history[history.count - 1] != step { history.push(step) }
    if let done = entry?.result {
      result = done
      phase = .reduce
    } else {
      transition = .forward(to: step)
    }
    _ = changedState(context)
    if mayBeBusy { turnEnd = loop.now().later(by: Self.firstTime) }
    proceedOnce()
    return phase == .ended ? .finished : .suspended
  }

  override func proceed() {
    isEnqueued = false
    guard phase != .ended, let context else { return }
    proceedOnce()
    if phase == .ended { context.endAsWork() }
  }

  /// Performs phases until the machine waits, has ended, or has used up its turn.
  private func proceedOnce() {
    isProceeding = true
    while phase != .ended, performPhase(), !engine.isTurnOver {}
    isProceeding = false
    engine.stamp = 0
    if engine.isTurnOver { wake() }
  }

  var waitingTask: AnyFlowTask? { context?.run }

  /// Continues after the run of a step, without a turn of the loop: a run ends within one of its
  /// works.
  func taskEnded(_ task: AnyFlowTask) {
    if engine.isTurnOver { wake() } else { engine.push(self) }
  }

  /// Continues after a wait, as a job of its own, because the caller may be in the middle of
  /// anything.
  func wake() {
    guard !isEnqueued, !isProceeding, phase != .ended else { return }
    isEnqueued = true
    loop.enqueue(self)
  }

  /// The steps that were entered, the present one included.
  var enteredSteps: [Int] { history.entered }
  var enteredNames: [ByteString] { enteredSteps.map { name(of: $0) } }

  /// Ends: with `error`, or successfully. The op is settled here, and continues elsewhere.
  private func end(_ error: FlowError?) {
    context?.noteHistory(history)
    if let error { context?.fail(error) }
    release()
  }

  private func release() {
    if let child { context?.run.endAwaiting(child) }
    phase = .ended
    context = nil
    child = nil
    call.end()
  }

  package func abandon() {
    (call.state as? any Abandonable)?.abandon()
    release()
  }

  /// Ends successfully with a value, whose fields are stored in the data bucket.
  private func finish(_ value: FlowValue) {
    guard let context else { return }
    if let decide {
      decide(.finish(value))
      end(nil)
      return
    }
    do {
      let outputs = try logic.outputs(of: value)
      // The lines of the bucket show the others.
      if outputs.isEmpty, let state = changedState(context) { context.logState(state) }
      for (name, field) in outputs {
        context.set(
          context.bucket.keys.intern(name), secretNames.contains(name) ? .secret(field) : field)
      }
    } catch {
      end(.from(error))
      return
    }
    context.noteFinish(value)
    end(nil)
  }

  /// Ends after a step without a transition.
  private func finishWithState() {
    do {
      finish(try logic.result(ofEnd: state, step))
    } catch {
      end(.from(error))
    }
  }

  // MARK: Stopping

  /// Stops it because of `error`; the first error counts.
  func cancel(_ error: FlowError) {
    guard phase != .ended, stop == nil else { return }
    stop = error
    if !isProceeding {
      // A job passes the stop on, so that no depth of nesting recurses.
      wake()
    } else if call.isInCall {
      // The function that is being called, or code called by it, has requested the stop.
      logic.interrupt(call, error)
    }
  }

  /// Whether it waits for a run, which can be stopped as stalled itself.
  var waitsForRun: Bool { child != nil }

  // MARK: Phases

  /// Performs one phase; false when it has to wait.
  private func performPhase() -> Bool {
    if isKeeping { return false }
    if let child {
      guard child.isConcluded else {
        if let stop, !hasPassedStop {
          hasPassedStop = true
          child.stop(stop.asReason)
          // A run that was idle has ended at once.
          return child.isConcluded
        }
        return false
      }
      self.child = nil
      context?.run.endAwaiting(child)
      takeResult(of: child)
    } else if call.isPending {
      guard let answer = call.takeAnswer() else {
        if let stop, !hasPassedStop {
          hasPassedStop = true
          logic.cancel(call, stop)
          return true
        }
        return false
      }
      takeAnswer(answer)
    } else if let stop {
      end(stop)
    } else if context?.isOpen == true {
      beginPhase()
    } else {
      // A function has failed the op through its context.
      end(nil)
    }
    return true
  }

  private func beginPhase() {
    switch phase {
    case .perform: perform()
    case .reduce:
      if blueprint.hasReducer {
        history.record(result, state)
        callFunction { logic.reduce(step, result, state, call) }
      } else {
        if !result.isNull { state = result }
        phase = .decide
      }
    case .decide:
      if table.isMarkedFinal(step), blueprint.hasProvider {
        finishWithState()
      } else if blueprint.hasProvider {
        callFunction { logic.transition(step, result, state, call) }
      } else if blueprint.hasEmitter {
        callFunction { logic.emit(step, result, state, call) }
      } else {
        follow(nil)
      }
    case .ended: break
    }
  }

  /// Calls a function, and takes its answer if it gives one at once.
  @inline(__always)
  private func callFunction(_ function: () -> MachineAnswer?) {
    if let answer = call.begin(function) { takeAnswer(answer) }
  }

  /// Performs the present step.
  private func perform() {
    if let replacements = engine.replacements, let fake = replacements.step(name(of: step)) {
      perform(fake)
    } else if table.isOp(step), let op = table.op(step) {
      perform(op)
    } else if let keeper = context?.run.keeper, context?.execution?.isWithinEnding != true {
      performKept(keeper)
    } else {
      callFunction { logic.perform(transition, step, state, call) }
    }
  }

  /// Performs the present step by a function, unless the keeper of the run knows its result.
  @inline(never)
  private func performKept(_ keeper: any RunKeeper) {
    guard let context else { return }
    let name = name(of: step)
    let work = undecided.take() ?? keptWork(name, context)
    switch keeper.decide(work) {
    case .execute(let keeping, let line):
      context.execution?.noteExecution()
      if let line { context.log("[\(name)] \(line)") }
      context.keeping = keeping
      callFunction { logic.perform(transition, step, state, call) }
    case .finished(let known):
      context.log("[\(name)] \(known.line)")
      for key in known.reads { context.execution?.noteRead(key) }
      do { try known.restore(context) } catch { return end(.from(error)) }
      context.execution?.noteKept(undone: undone(all: [known.innerUndone, known.undone]))
      takeAnswer(.result(known.result))
    case .fail(let error): end(error)
    case .refuse(let error): endRun(error)
    // It has depended on files (`OpContext.dependsOn`), which have to be read first.
    case .later(let reading):
      work.reading = reading
      undecided = work
      isKeeping = true
      reading.begin { [self] in
        isKeeping = false
        wake()
      }
    }
  }

  /// The description of the present step for the keeper of the run.
  private func keptWork(_ name: ByteString, _ context: OpContext) -> KeptWork {
    let way: Int64 =
      switch transition {
      case .forward: 0
      case .back: 1
      case .stay: 2
      }
    visitCount += 1
    let title: ByteString = "\(context.op.name).\(name)"
    let logic = logic
    let names = KeptNames(label: nil, path: context.path + "/" + name) { title }
    return KeptWork(
      name: title, names: { names },
      code: { try logic.codeForm() },
      inputs: [("state", comparableState), ("transition", .integer(way))], data: context.bucket,
      lineage: (context.placedLineage ^ visitCount).spread, outer: context.execution?.outerKeeping,
      isWithinUndo: context.execution?.isWithinUndo == true, loop: loop)
  }

  /// The state without what steps beside the machine had set before it started: else it would be another one after a kill,
  /// because these steps end at once when they are kept.
  private var comparableState: FlowValue {
    if changesBeside.isEmpty { return state }
    let data = DataBucket(keys: loop.keys)
    do {
      let fields = try logic.outputs(of: state)
      if fields.isEmpty { return state }
      for (name, value) in fields {
        let key = loop.keys.intern(name)
        data.set(key, changesBeside[key].map { $0 ?? .null } ?? value)
      }
      return try logic.state(of: data)
    } catch {
      return state
    }
  }

  /// Continues with the outcome of the present step when the keeper of the run has it.
  @inline(never)
  private func keep(_ answer: MachineAnswer, _ keeping: any KeptExecution, _ context: OpContext) {
    var error: FlowError?
    var outputs: [(key: DataKey?, value: FlowValue)] = []
    switch answer {
    case .failed(let failure): error = failure
    case .result(let result): outputs.append((nil, result))
    default: break
    }
    isKeeping = true
    let end = KeptEnd(
      error: error, attempt: context.attempt, data: context.bucket, outputs: outputs)
    keeping.keepEnd(end) { [self] problem in
      isKeeping = false
      guard phase != .ended else { return }
      if problem == nil, error == nil {
        let whole = undone(all: [keeping.keepInnerUndone, keeping.keepUndone])
        context.execution?.noteKept(undone: whole)
      }
      if let problem { endRun(problem) } else { takeAnswer(answer) }
      if phase == .ended, !isProceeding { context.end() } else { wake() }
    }
  }

  /// Ends with a failure of the whole run: what became of a step isn't known, or can't be kept.
  private func endRun(_ error: FlowError) {
    let context = context
    end(error.final)
    if let error = context?.outcome { context?.execution?.failAround(error) }
  }

  /// Performs the present step with its replacement, which a test has set.
  @inline(never)
  private func perform(_ fake: StepReplacement) {
    switch fake {
    case .op(let op): perform(op)
    case .function(let function): callFunction { logic.perform(function, step, state, call) }
    case .value(let value):
      var copies: ValueCopies?
      do {
        takeAnswer(.result(try value.copyForRun(&copies)))
      } catch {
        end(.from(error))
      }
    }
  }

  /// Performs the present step by an op, in a run of its own.
  private func perform(_ op: Op) {
    guard let context else { return }
    // A machine accepts any state.
    let machine = op as? MachineOp
    let data: [(ByteString, FlowValue)]
    do {
      data = try machine == nil ? logic.data(of: state) : logic.outputs(of: state)
    } catch {
      fail(
        "can't run '\(op.name)' as step '\(name(of: step))': \(FlowError.from(error).message)"
      )
      return
    }
    let shown = data.map { ($0, isSecret($0, context) ? FlowValue.secret($1) : $1) }
    let begun = machine?.entering(MachineEntry(state: state)) ?? op
    let run = Run(begun, on: loop, name: op.name, sinks: engine.eventSinks)
    // Its failure is this machine's.
    run.markObserved()
    run.undos = []
    run.changesBeside = changesBeside
    child = run
    run.observe(waiting: self)
    context.run.beginAwaiting(run)
    run.begin(shown, owner: context, asWork: true)
  }

  /// Takes the outcome of the present step's run.
  private func takeResult(of run: Run) {
    if run.hasExecuted { context?.execution?.noteExecution() }
    for undone in run.kept { context?.execution?.noteKept(undone: undone) }
    if let error = run.error {
      end(error)
      return
    }
    if let undos = run.undos, !undos.isEmpty, let context {
      context.makeResources().undos += undos.map { $0.outside(within: context) }
      run.undos = nil
    }
    do {
      result = try run.plainFinishValue ?? logic.result(of: run)
    } catch {
      end(.from(error))
      return
    }
    if run.log.hasSecrets {
      for entry in run.data.entries where run.data.isSecret(entry.key) {
        secretNames.insert(loop.keys.name(of: entry.key))
        context?.run.log.hide(entry.value)
      }
    }
    phase = .reduce
  }

  /// Takes the answer of a function.
  private func takeAnswer(_ answer: MachineAnswer) {
    if let context, let keeping = context.keeping {
      context.keeping = nil
      keep(answer, keeping, context)
      return
    }
    switch (answer, phase) {
    case (.failed(let error), _): end(error)
    case (.result(let value), .perform):
      result = value
      phase = .reduce
    case (.reduction(.continue(let value)), .reduce):
      state = value
      phase = .decide
    case (.reduction(.finish(let value)), .reduce): finish(value)
    case (.reduction(.retry), .reduce): retry()
    case (.event(let event), .decide): follow(event)
    case (.transition(let next?), .decide):
      takeTransition(next, nil, blueprint.definition.providerPlace)
    case (.transition(nil), .decide): finishWithState()
    default:
      end(
        .usage("machine '\(blueprint.definition.name)': a function gave an answer of another kind"))
    }
  }

  // MARK: Transitions

  /// Makes the transition that the step's own list names.
  private func follow(_ event: MachineEvent?) {
    var number: Int?
    switch event {
    case .known(let known): number = known
    case .unknown where table.isMarkedFinal(step): return finishWithState()
    case .unknown(let event):
      fail("has no transition on event '\(event)' for step '\(name(of: step))'")
      return
    case nil: break
    }
    if let handler = table.handler(after: step, on: number) {
      takeTransition(handler.transition, number, handler.place)
    } else if table.isMarkedFinal(step) {
      finishWithState()
    } else if let number {
      let event = logic.name(ofEvent: number)
      fail("has no transition on event '\(event)' for step '\(name(of: step))'")
    } else if table.isFinal(step) {
      finishWithState()
    } else {
      fail("has no transition without an event for step '\(name(of: step))'")
    }
  }

  private func takeTransition(_ next: MachineTransition<Int>, _ event: Int?, _ place: Int) {
    let from = step
    switch next {
    case .forward(let target):
      guard blueprint.isOpen || table.has(target) else {
        let hint = blueprint.definition.hint(for: target) { name(of: $0) }
        fail(
          "goes forward from step '\(name(of: from))' to unknown step '\(name(of: target))'\(hint)",
          place)
        return
      }
      if isDecided(next) { return }
      guard count() else { return }
      history.push(target)
      step = target
      transition = next
    case .back(let target):
      if isDecided(next) { return }
      let index = target.map { history.lastIndex(of: $0) } ?? history.count - 2
      guard let index, index >= 0 else {
        let what: ByteString =
          target.map { "to step '\(name(of: $0))', which wasn't entered before" }
          ?? "with an empty history"
        fail("goes back from step '\(name(of: from))' \(what)", place)
        return
      }
      guard count() else { return }
      history.cut(to: index)
      step = history[index]
      transition = .back(to: step)
    case .stay:
      if isDecided(next) { return }
      guard count() else { return }
      transition = .stay
    }
    if let context {
      context.logTransition(state: changedState(context)) { lines.payload(from, step, event, $0) }
    }
    phase = .perform
  }

  /// Whether only the decision was requested; then the machine has ended.
  @inline(__always)
  private func isDecided(_ next: MachineTransition<Int>) -> Bool {
    guard let decide else { return false }
    decide(.go(next, state))
    end(nil)
    return true
  }

  /// Takes the previous step's result again.
  private func retry() {
    if let decide {
      decide(.retry)
      end(nil)
      return
    }
    guard count() else { return }
    if let previous = history.previous {
      history.cut(to: history.count - 2)
      step = history[history.count - 1]
      result = previous.result
      state = previous.state
      phase = .reduce
    } else {
      transition = .stay
      phase = .perform
    }
    if let context {
      context.logTransition(state: changedState(context)) { lines.payload(retrying: step, $0) }
    }
  }

  /// Counts a transition; when the limit is exceeded, ends the machine and returns false.
  private func count() -> Bool {
    guard transitionCount < blueprint.maxTransitions else {
      end(FlowError(.error, "exceeded max_transitions (\(blueprint.maxTransitions))"))
      return false
    }
    transitionCount += 1
    // A step may execute no op, which would count towards the loop's turn.
    if mayBeBusy { countTurn() } else { _ = engine.nextGeneration() }
    return true
  }

  /// Lets other jobs run now and then: functions of a script that never wait may take long together.
  private func countTurn() {
    turnLeft -= 1
    guard turnLeft == 0 || loop.now() >= turnEnd else { return }
    turnLeft = Self.turnLength
    turnEnd = loop.now().later(by: 1_000_000)
    engine.endTurn()
    loop.looksAround()
  }

  private func name(of step: Int) -> ByteString { logic.name(ofStep: step) }

  /// Ends with an error of the definition, which names the place where that was written: by default
  /// the step's.
  private func fail(_ message: ByteString, _ place: Int? = nil) {
    let place = place ?? table.place(of: step)
    end(.usage("\(logic.position(of: place))machine '\(blueprint.definition.name)' \(message)"))
  }
}
