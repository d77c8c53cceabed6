@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The function of a machine that a coroutine runs.
enum MachinePart {
  case step, reduce, emit, transition
}

/// A function with which a test replaces a step.
final class StepFunction {
  let callback: LuaCallback

  init(_ function: LuaReference) {
    callback = LuaCallback(function, handle: .last)
  }
}

/// The functions of a machine written in Lua: coroutines, so they may wait.
final class ScriptMachineLogic: MachineLogic {
  // A Swift program may keep the machine longer than the host. The cycle ends when the host is
  // closed.
  private let host: ScriptHost
  private let machine: ByteString
  /// The place where the machine was made.
  private let position: ByteString
  var mayBeBusy: Bool { true }
  private(set) var steps = NameTable<ByteString>()
  private(set) var events = NameTable<ByteString>()
  /// The places of the script where parts were written.
  private var positions: [ByteString] = []

  /// The functions of the steps, by number.
  private var functions: ContiguousArray<LuaCallback?> = []
  var navigate: LuaCallback?
  var reduce: LuaCallback?
  var emit: LuaCallback?
  var transition: LuaCallback?

  init(_ host: ScriptHost, machine: ByteString, position: ByteString) {
    self.host = host
    self.position = position
    self.machine = machine
  }

  // MARK: Making it

  func number(ofStep name: ByteString) -> Int { steps.add(name, name: name) }

  func number(ofEvent name: ByteString) -> Int { events.add(name, name: name) }

  func place(_ position: ByteString) -> Int {
    positions.append(position)
    return positions.count - 1
  }

  func setFunction(_ function: LuaReference, of step: Int) {
    while functions.count <= step { functions.append(nil) }
    functions[step] = LuaCallback(function, handle: .last)
  }

  // MARK: Names and places

  func name(ofStep step: Int) -> ByteString { steps.names[step] }

  func name(ofEvent event: Int) -> ByteString { events.names[event] }

  func position(of place: Int) -> ByteString {
    positions.indices.contains(place) ? positions[place] : ""
  }

  // MARK: Code

  func codeForm() throws -> CodeForm? {
    try host.codeForm(of: try host.vm.makeTable(values: codeValues))
  }

  // MARK: Data

  func state(of data: DataBucket) throws -> FlowValue {
    .opaque(ScriptValue(try host.table(ofAllIn: data)))
  }

  func data(of state: FlowValue) throws -> [(ByteString, FlowValue)] {
    if state.isNull { return [] }
    guard case .opaque(let value) = state.plain, let table = value as? ScriptValue,
      table.reference.kind == .table
    else {
      throw FlowError.usage("its state must be a table, got \(state.typeName)")
    }
    return try fields(table.reference) { key in
      let type = host.vm.typeName(of: key)
      throw FlowError.usage("keys of its state are strings, got a key of type \(type)")
    }
  }

  func result(of run: Run) throws -> FlowValue {
    .opaque(ScriptValue(try host.table(of: run.data)))
  }

  func outputs(of value: FlowValue) throws -> [(ByteString, FlowValue)] {
    guard case .opaque(let value) = value.plain, let table = value as? ScriptValue,
      table.reference.kind == .table
    else { return [] }
    return try fields(table.reference) { _ in }
  }

  /// The string keys of a table with their values, in order.
  private func fields(
    _ table: LuaReference, other: (LuaValue) throws -> Void
  ) throws -> [(ByteString, FlowValue)] {
    var result: [(ByteString, FlowValue)] = []
    for (key, value) in try host.vm.pairs(of: table) {
      guard case .string(let name) = key else {
        try other(key)
        continue
      }
      try host.checkMemory(forKey: name)
      result.append((name, FlowValue(value)))
    }
    return result.sorted { $0.0 < $1.0 }
  }

  /// An external state becomes a Lua value once, so that all functions see the same one.
  func convertedState(_ state: FlowValue) throws -> FlowValue? {
    FlowValue(try host.luaValue(state))
  }

  // MARK: Functions

  func perform(
    _ transition: MachineTransition<Int>, _ step: Int, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    if let navigate {
      do {
        // It gets the target even if the transition names no step.
        let table = try host.vm.transitionTable(transition.kindName, steps.names[step])
        return start(navigate, .step, .opaque(ScriptValue(table)), state, call)
      } catch {
        return .failed(host.flowError(thrown: error, op: nil))
      }
    }
    guard functions.indices.contains(step), let function = functions[step] else {
      return refusal("nothing performs step '\(steps.names[step])'", nil)
    }
    return start(function, .step, state, nil, call)
  }

  func perform(
    _ function: AnyObject, _ step: Int, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    guard let function = function as? StepFunction else {
      return refusal("nothing performs step '\(steps.names[step])'", nil)
    }
    return start(function.callback, .step, state, nil, call)
  }

  func reduce(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    reduce.flatMap { start($0, .reduce, state, result, call) }
  }

  func emit(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    emit.flatMap { start($0, .emit, result, state, call) }
  }

  func transition(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    transition.flatMap { start($0, .transition, .bytes(steps.names[step]), result, call, state) }
  }

  /// Calls a function, up to its first wait.
  @inline(__always)
  private func start(
    _ callback: LuaCallback, _ part: MachinePart, _ first: FlowValue, _ second: FlowValue?,
    _ call: MachineCall, _ third: FlowValue? = nil
  ) -> MachineAnswer? {
    guard let context = call.context else { return nil }
    let limits = host.limits(context.deadline, grace: host.closeGrace(context.grace))
    // As `ScriptHost.run`, without a closure on the hot path.
    let outer = host.current
    host.current = ScriptHost.Current(op: .passUnretained(context))
    defer { host.current = outer }
    do {
      let outcome =
        if let third {
          callback.start(
            try [first, second ?? .null, third].map { try host.luaValue($0) }, slot: context.slot,
            generation: context.generation, deadline: limits.deadline, grace: limits.grace)
        } else {
          callback.start(
            try host.luaValue(first), try second.map { try host.luaValue($0) }, slot: context.slot,
            generation: context.generation, deadline: limits.deadline, grace: limits.grace)
        }
      switch outcome {
      case .returned(let value, let mark):
        return answer(value, mark, part, call)
      case .returnedArgument(let index, let mark):
        // No other form is needed than the original one.
        let value = index == 0 ? first : index == 1 ? second ?? .null : third ?? .null
        if part == .step, mark == 0 { return .result(value) }
        if part == .reduce, let reduction = reduction(mark, value) { return .reduction(reduction) }
        return answer(try host.luaValue(value), mark, part, call)
      default: break
      }
      switch host.state(after: outcome, of: .machine(call, part)) {
      case .waits(let coroutine):
        let fiber = Fiber(host, coroutine, owner: .machine(call, part))
        call.state = fiber
        fiber.park()
        return nil
      case .ended(.returned(let value)): return answer(value, 0, part, call)
      case .ended(.failed(let error)): return .failed(error)
      }
    } catch {
      return .failed(host.flowError(thrown: error, op: nil))
    }
  }

  func cancel(_ call: MachineCall, _ error: FlowError) {
    if let fiber = call.state as? Fiber {
      fiber.cancel(error)
    } else if let follower = call.state as? ResultFollower {
      follower.cancel(error)
    }
  }

  /// A function that ignores a stop before its first wait is stopped after the grace period.
  func interrupt(_ call: MachineCall, _ error: FlowError) {
    guard let context = call.context else { return }
    let end = min(
      LuaVM.monotonicTime.later(by: host.loop.gracePeriod.clampedNanoseconds),
      host.watchDeadline(context.deadline))
    host.vm.watchOperation(
      slot: context.slot, generation: context.attemptGeneration, deadline: end,
      grace: host.closeGrace(context.grace))
  }

  // MARK: Results

  /// Handles the result of a function that has waited.
  func finish(_ value: LuaValue, _ part: MachinePart, _ call: MachineCall) {
    do {
      let (mark, value) = try host.vm.unmark(value)
      if let answer = answer(value, mark, part, call) { call.finish(answer) }
    } catch {
      call.finish(.failed(host.flowError(thrown: error, op: nil)))
    }
  }

  /// The meaning of a returned value; nil if it isn't available yet.
  private func answer(
    _ value: LuaValue, _ mark: Int32, _ part: MachinePart, _ call: MachineCall
  ) -> MachineAnswer? {
    switch part {
    case .step where mark == 0:
      if case .reference(let reference) = value, reference.kind == .userdata,
        let task = host.task(in: value)
      {
        return ResultFollower.follow(task, call, host)
      }
      return (try? host.changeable(value)).map { .result(FlowValue($0)) }
        ?? .failed(FlowError(.memory, LuaVM.memoryError))
    case .reduce:
      if let reduction = reduction(mark, FlowValue(value)) { return .reduction(reduction) }
    case .emit where mark == 0:
      switch value {
      case .nil, .boolean(false): return .event(nil)
      case .string(let string):
        let name = string
        return .event(events.number(of: name).map { .known($0) } ?? .unknown(name))
      default: break
      }
    case .transition where mark == 0:
      if value.isNil { return .transition(nil) }
      if let next = try? host.vm.transition(in: value) {
        let number = next.step.map { self.number(ofStep: $0) }
        return .transition(next.map { _ in number ?? 0 })
      }
    default: break
    }
    return refusal(value, mark, part, call)
  }

  private func reduction(_ mark: Int32, _ value: FlowValue) -> Reduction<FlowValue, FlowValue>? {
    switch ReductionMark(rawValue: mark) {
    case .continue: .continue(value)
    case .finish: .finish(value)
    case .retry: .retry
    case nil: nil
    }
  }

  /// The error of a function that returned a wrong value; the message begins with its line.
  private func refusal(
    _ value: LuaValue, _ mark: Int32, _ part: MachinePart, _ call: MachineCall
  ) -> MachineAnswer {
    let (field, function, expected): (ByteString, LuaCallback?, ByteString) =
      switch part {
      case .step: ("run", navigate ?? functions[call.step], "result")
      case .reduce: ("reduce", reduce, "flow.continue, flow.finish or flow.retry")
      case .emit: ("emit", emit, "name of an event, or nil,")
      case .transition: ("transition", transition, "transition, or nil,")
      }
    var got = ByteString(host.kindName(of: value))
    if let mark = ReductionMark(rawValue: mark) { got = "flow.\(mark.name)" }
    let message: ByteString = """
      '\(field)' returned a wrong value for step '\(steps.names[call.step])' \
      (\(expected) expected, got \(got))
      """
    return refusal(message, function)
  }

  private func refusal(_ message: ByteString, _ function: LuaCallback?) -> MachineAnswer {
    // A function of C has no line.
    let place = function.map(\.position).flatMap { $0.bytes.isEmpty ? nil : $0 } ?? position
    return .failed(.usage("\(place)machine '\(machine)': \(message)"))
  }
}

/// Handles the result of a task that a step has returned.
private final class ResultFollower: TaskObserver {
  private let host: ScriptHost
  private var call: MachineCall?
  /// Weak, because the task keeps its observers: on a loop that is shut down it never ends.
  private weak var task: AnyFlowTask?
  /// Set once it has ended.
  private var ended: AnyFlowTask?

  private init(_ host: ScriptHost, _ task: AnyFlowTask, _ call: MachineCall) {
    self.host = host
    self.task = task
    self.call = call
  }

  /// The result of a settled task; nil for one that the call has to wait for.
  static func follow(
    _ task: AnyFlowTask, _ call: MachineCall, _ host: ScriptHost
  ) -> MachineAnswer? {
    task.markObserved()
    if let error = task.foreignError(on: host.loop) { return .failed(error) }
    let follower = ResultFollower(host, task, call)
    if task.isConcluded { return follower.answer(of: task) }
    if let context = call.context {
      if WaitCycle.isClosed(by: context.run, awaiting: task) {
        return .failed(.stalled(op: context.displayName))
      }
      context.run.beginAwaiting(task)
    }
    call.state = follower
    task.observe(waiting: follower)
    return nil
  }

  var waitingTask: AnyFlowTask? { call?.context?.run }

  func taskEnded(_ task: AnyFlowTask) {
    waitingTask?.endAwaiting(task)
    ended = task
    task.loop.enqueue(self)
  }

  private func answer(of task: AnyFlowTask) -> MachineAnswer {
    if let error = host.outcomeError(of: task) { return .failed(error) }
    do {
      let result = try host.luaValue(try host.result(of: task))
      return .result(FlowValue(try host.changeable(result)))
    } catch {
      return .failed(host.flowError(thrown: error, op: nil))
    }
  }

  func run() {
    guard let task = ended, let call else { return }
    ended = nil
    self.call = nil
    call.finish(answer(of: task))
  }

  /// The machine has been stopped. That stops the task too, if the machine has started it.
  func cancel(_ error: FlowError) {
    if let task {
      task.unobserve(self)
      waitingTask?.endAwaiting(task)
    }
    let asked = call
    call = nil
    asked?.finish(.failed(error))
  }
}

extension ScriptMachineLogic: LuaCode {
  /// The functions of the steps by their names, and those of the machine.
  var codeValues: [LuaValue] {
    var values: [LuaValue] = [.string("machine")]
    for callback in [navigate, reduce, emit, transition] {
      values.append(callback.map { .reference($0.function) } ?? .boolean(false))
    }
    for (step, callback) in functions.enumerated() {
      guard let callback else { continue }
      values += [.string(name(ofStep: step)), .reference(callback.function)]
    }
    return values
  }
}

/// A result of `reduce`: a value with one of these marks, made by the function of this name.
enum ReductionMark: Int32, CaseIterable {
  case `continue` = 1
  case finish = 2
  case retry = 3

  /// The function's name in the module. Not by reflection, because its first use would cost each
  /// script that requires the module half a millisecond.
  var name: String {
    switch self {
    case .continue: "continue"
    case .finish: "finish"
    case .retry: "retry"
    }
  }
}
