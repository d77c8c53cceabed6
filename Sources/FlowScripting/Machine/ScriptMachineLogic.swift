internal import FlowEngine
internal import LuaVM

/// Which function of a machine a coroutine is.
enum MachinePart {
  case step, reduce, emit, transition
}

/// The functions of a machine written in Lua: coroutines, so they may wait.
final class ScriptMachineLogic: MachineLogic {
  // A Swift program may hold the machine longer than the host. The cycle ends when the host is closed.
  private let host: ScriptHost
  private let machine: ByteString
  private(set) var steps = NameTable<ByteString>()
  private(set) var events = NameTable<ByteString>()
  /// Where things were written, by their places.
  private var positions: [LuaString] = []

  /// Performs a step each, by their numbers.
  private var functions: ContiguousArray<LuaCallback?> = []
  var navigate: LuaCallback?
  var reduce: LuaCallback?
  var emit: LuaCallback?
  var transition: LuaCallback?

  init(_ host: ScriptHost, machine: ByteString) {
    self.host = host
    self.machine = machine
  }

  // MARK: Making it

  func number(ofStep name: ByteString) -> Int { steps.add(name, name: name) }

  func number(ofEvent name: ByteString) -> Int { events.add(name, name: name) }

  func place(_ position: LuaString) -> Int {
    positions.append(position)
    return positions.count - 1
  }

  func setFunction(_ function: LuaReference, of step: Int) {
    while functions.count <= step { functions.append(nil) }
    functions[step] = LuaCallback(function, getsHandle: true)
  }

  // MARK: Names and places

  func name(ofStep step: Int) -> ByteString { steps.names[step] }

  func name(ofEvent event: Int) -> ByteString { events.names[event] }

  func position(of place: Int) -> ByteString {
    positions.indices.contains(place) ? ByteString(positions[place]) : ""
  }

  // MARK: Data

  func state(of data: DataBucket) throws -> Value {
    .opaque(ScriptValue(try host.table(ofAllIn: data)))
  }

  func data(of state: Value) throws -> [(ByteString, Value)] {
    if state.isNull { return [] }
    guard case .opaque(let value) = state.plain, let table = value as? ScriptValue,
      table.reference.kind == .table
    else {
      throw FlowError.usage(
        "machine '\(machine)': the state must be a table for a step that is an op, got \(state.typeName)"
      )
    }
    return try fields(table.reference) { key in
      let type = ByteString(host.vm.typeName(of: key))
      throw FlowError.usage(
        "machine '\(machine)': the state must have string keys for a step that is an op, got a key of type \(type)"
      )
    }
  }

  func result(of run: Run) throws -> Value {
    .opaque(ScriptValue(try host.table(of: run.data)))
  }

  func outputs(of value: Value) throws -> [(ByteString, Value)] {
    guard case .opaque(let value) = value.plain, let table = value as? ScriptValue,
      table.reference.kind == .table
    else { return [] }
    return try fields(table.reference) { _ in }
  }

  /// The string keys of a table with their values, in order.
  private func fields(
    _ table: LuaReference, other: (LuaValue) throws -> Void
  ) throws -> [(ByteString, Value)] {
    var result: [(ByteString, Value)] = []
    for (key, value) in try host.vm.pairs(of: table) {
      guard case .string(let name) = key else {
        try other(key)
        continue
      }
      result.append((ByteString(name), Value(value)))
    }
    return result.sorted { $0.0 < $1.0 }
  }

  /// A state of elsewhere becomes a Lua value once, so that all functions see the same one.
  func own(_ value: Value) throws -> Value { Value(try host.luaValue(value)) }

  // MARK: Functions

  func perform(
    _ transition: Transition<Int>, _ step: Int, _ state: Value, _ call: MachineCall
  ) {
    if let navigate {
      do {
        let table = try host.table(of: transition.map { steps.names[$0] })
        start(navigate, .step, .opaque(ScriptValue(table)), state, call)
      } catch {
        call.finish(.failed(host.flowError(thrown: error, op: nil)))
      }
    } else if functions.indices.contains(step), let function = functions[step] {
      start(function, .step, state, nil, call)
    } else {
      refuse(call, "nothing performs step '\(steps.names[step])'", nil)
    }
  }

  func reduce(_ step: Int, _ result: Value, _ state: Value, _ call: MachineCall) {
    if let reduce { start(reduce, .reduce, state, result, call) }
  }

  func emit(_ step: Int, _ result: Value, _ state: Value, _ call: MachineCall) {
    if let emit { start(emit, .emit, result, state, call) }
  }

  func transition(_ step: Int, _ result: Value, _ state: Value, _ call: MachineCall) {
    guard let transition else { return }
    let arguments: [Value] = [.bytes(steps.names[step]), result, state]
    start(call, .transition, arguments) { context, limit in
      transition.start(
        try arguments.map { try host.luaValue($0) }, slot: context.slot,
        generation: context.generation, deadline: limit, grace: host.loop.gracePeriod)
    }
  }

  private func start(
    _ callback: LuaCallback, _ part: MachinePart, _ first: Value, _ second: Value?,
    _ call: MachineCall
  ) {
    start(call, part, [first, second ?? .null]) { context, limit in
      callback.start(
        try host.luaValue(first), try second.map { try host.luaValue($0) }, slot: context.slot,
        generation: context.generation, deadline: limit, grace: host.loop.gracePeriod)
    }
  }

  /// Calls a function, up to its first wait.
  @inline(__always)
  private func start(
    _ call: MachineCall, _ part: MachinePart, _ arguments: [Value],
    _ body: (OpContext, Int64) throws -> LuaCallback.Progress
  ) {
    guard let context = call.context else { return }
    let deadline = context.deadline
    let limit = deadline == .max ? .max : host.watchDeadline(deadline)
    // As `ScriptHost.run`, without a closure on the hot path.
    let (outerOp, outerRun) = (host.currentOp, host.currentRun)
    host.currentOp = context
    defer { (host.currentOp, host.currentRun) = (outerOp, outerRun) }
    do {
      switch try body(context, limit == .max ? 0 : limit) {
      case .returned(let value): finish(value, part, call)
      case .returnedArgument(let index):
        // A step's result needs no other form than the state that it is.
        if part == .step {
          call.finish(.result(arguments[index]))
        } else {
          finish(try host.luaValue(arguments[index]), part, call)
        }
      case .step(let step): try goOn(step, part, call)
      case .refused(let error):
        call.finish(.failed(FlowError(.error, ByteString(error.message))))
      }
    } catch {
      call.finish(.failed(host.flowError(thrown: error, op: nil)))
    }
  }

  private func goOn(_ step: LuaStep, _ part: MachinePart, _ call: MachineCall) throws {
    switch step.outcome {
    case .finished:
      let value = try host.vm.firstResult(step)
      host.vm.release(step.coroutine, finished: true)
      finish(value, part, call)
    case .parked:
      host.vm.unwatch(step.coroutine)
      let fiber = Fiber(host, step.coroutine, owner: .machine(call, part))
      call.state = fiber
      fiber.park()
    case .stopped:
      host.vm.release(step.coroutine, finished: false)
      call.finish(.failed(call.expire()))
    case .failed, .yielded:
      let error = host.takeFailure(step, op: call.context?.displayName)
      host.vm.release(step.coroutine, finished: false)
      call.finish(.failed(error))
    }
  }

  func cancel(_ call: MachineCall, _ error: FlowError) {
    if let fiber = call.state as? Fiber {
      fiber.cancel(error)
    } else if let follower = call.state as? ResultFollower {
      follower.cancel(error)
    }
  }

  /// A function that goes on regardless, although its first stretch isn't over, is stopped after the
  /// grace period.
  func interrupt(_ call: MachineCall, _ error: FlowError) {
    guard let context = call.context else { return }
    let end = min(
      LuaVM.monotonicTime + host.loop.gracePeriod, host.watchDeadline(context.deadline))
    host.vm.watchOperation(
      slot: context.slot, generation: context.attemptGeneration, deadline: end,
      grace: host.loop.gracePeriod)
  }

  // MARK: Answers

  /// Takes what a function has returned.
  func finish(_ value: LuaValue, _ part: MachinePart, _ call: MachineCall) {
    do {
      switch part {
      case .step:
        if case .reference(let reference) = value, reference.kind == .userdata,
          let task = host.task(in: value)
        {
          ResultFollower.follow(task, call, host)
        } else {
          call.finish(.result(Value(value)))
        }
      case .reduce:
        guard let reduction = try host.reduction(in: value) else {
          refuse(call, value, "reduce", reduce, "flow.continue, flow.finish or flow.retry")
          return
        }
        call.finish(.reduction(reduction))
      case .emit:
        switch value {
        case .nil, .boolean(false): call.finish(.event(nil))
        case .string(let string):
          let name = ByteString(string)
          call.finish(.event(events.number(of: name).map { .known($0) } ?? .unknown(name)))
        default: refuse(call, value, "emit", emit, "name of an event, or nil")
        }
      case .transition:
        if value.isNil {
          call.finish(.transition(nil))
        } else if let next = try host.transition(in: value) {
          let number = next.step.map { self.number(ofStep: $0) }
          call.finish(.transition(next.map { _ in number ?? 0 }))
        } else {
          refuse(call, value, "transition", transition, "transition, or nil")
        }
      }
    } catch {
      call.finish(.failed(host.flowError(thrown: error, op: nil)))
    }
  }

  /// Fails with what a function returned that it shouldn't; the message begins with its line.
  private func refuse(
    _ call: MachineCall, _ value: LuaValue, _ field: ByteString, _ function: LuaCallback?,
    _ expected: ByteString
  ) {
    refuse(
      call,
      "'\(field)' returned a wrong value behind step '\(steps.names[call.step])' "
        + "(\(expected) expected, got \(ByteString(host.kindName(of: value))))", function)
  }

  private func refuse(_ call: MachineCall, _ message: ByteString, _ function: LuaCallback?) {
    let position = function.map { ByteString($0.position) } ?? ""
    call.finish(.failed(.usage("\(position)machine '\(machine)': \(message)")))
  }
}

/// Takes the result of a task that a step has returned.
private final class ResultFollower: LoopJob {
  private let host: ScriptHost
  private let task: FlowTask
  private var call: MachineCall?

  private init(_ host: ScriptHost, _ task: FlowTask, _ call: MachineCall) {
    self.host = host
    self.task = task
    self.call = call
  }

  static func follow(_ task: FlowTask, _ call: MachineCall, _ host: ScriptHost) {
    task.markObserved()
    let follower = ResultFollower(host, task, call)
    if task.isConcluded {
      follower.run()
    } else {
      call.state = follower
      task.observe(follower)
    }
  }

  func run() {
    let ended = call
    call = nil
    do {
      if let error = try host.error(of: task) {
        ended?.finish(.failed(error))
      } else {
        ended?.finish(.result(Value(try host.result(of: task))))
      }
    } catch {
      ended?.finish(.failed(host.flowError(thrown: error, op: nil)))
    }
  }

  func cancel(_ error: FlowError) {
    task.unobserve(self)
    let ended = call
    call = nil
    ended?.finish(.failed(error))
  }
}
