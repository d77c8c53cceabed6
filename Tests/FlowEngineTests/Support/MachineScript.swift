@_spi(Scripting) import FlowEngine

/// A machine written with names, whose functions are closures over engine values.
final class ScriptedLogic: MachineLogic {
  typealias Body = (FlowValue, MachineCall) throws -> FlowValue

  var steps = NameTable<ByteString>()
  var events = NameTable<ByteString>()
  var bodies: [Int: Body] = [:]
  var reducer: ((FlowValue, FlowValue) throws -> Reduction<FlowValue, FlowValue>)?
  var emitter: ((FlowValue, FlowValue) throws -> ByteString?)?
  var provider: ((ByteString, FlowValue, FlowValue) throws -> MachineTransition<ByteString>?)?
  /// Seconds that each function takes.
  var wait = 0.0
  private(set) var cancelled = 0

  func step(_ name: ByteString) -> Int { steps.add(name, name: name) }

  func state(of data: DataBucket) throws -> FlowValue {
    let entries = data.entries.map { (data.keys.name(of: $0.key), $0.value) }
    return .opaque(MapValue(entries))
  }

  func data(of state: FlowValue) throws -> [(ByteString, FlowValue)] {
    if state.isNull { return [] }
    guard let fields = state.fields else {
      throw FlowError.usage("the state of an op that is a step must be a table")
    }
    return fields
  }

  func result(of run: Run) throws -> FlowValue { try state(of: run.data) }

  func outputs(of value: FlowValue) throws -> [(ByteString, FlowValue)] {
    value.fields ?? []
  }

  private func answer(
    _ call: MachineCall, _ body: @escaping () throws -> MachineAnswer
  ) -> MachineAnswer? {
    func finish() {
      do { call.finish(try body()) } catch { call.finish(.failed(Self.flowError(error))) }
    }
    if wait > 0, let loop = call.context?.loop {
      call.state = loop.schedule(after: .seconds(wait)) { finish() }
    } else {
      finish()
    }
    return nil
  }

  private static func flowError(_ error: any Error) -> FlowError {
    error as? FlowError ?? FlowError(.error, ByteString(String(describing: error)))
  }

  func perform(
    _ transition: MachineTransition<Int>, _ step: Int, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    answer(call) { [bodies] in .result(try bodies[step]?(state, call) ?? .null) }
  }

  func reduce(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    answer(call) { [reducer] in .reduction(try reducer?(state, result) ?? .continue(state)) }
  }

  func emit(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    answer(call) { [emitter, events] in
      guard let name = try emitter?(result, state) else { return .event(nil) }
      return .event(events.number(of: name).map { .known($0) } ?? .unknown(name))
    }
  }

  func transition(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    answer(call) { [self] in
      switch try provider?(steps.names[step], result, state) {
      case nil: .transition(nil)
      case .forward(let to): .transition(.forward(to: self.step(to)))
      case .back(let to): .transition(.back(to: to.map { self.step($0) }))
      case .stay: .transition(.stay)
      }
    }
  }

  func cancel(_ call: MachineCall, _ error: FlowError) {
    cancelled += 1
    (call.state as? LoopTimer)?.cancel()
    call.finish(.failed(error))
  }

  func name(ofStep step: Int) -> ByteString { steps.names[step] }

  func name(ofEvent event: Int) -> ByteString { events.names[event] }

  func position(of place: Int) -> ByteString { place < 0 ? "" : "line \(place): " }
}

/// A transition after a step: `.on("e", .forward(to: "b"))`, `.next(.back(to: nil))`.
enum After {
  case on(ByteString, MachineTransition<ByteString>)
  case next(MachineTransition<ByteString>)
}

/// Builds machines from names and closures.
struct MachineScript {
  let logic = ScriptedLogic()
  var definition: MachineDefinition
  private var places = 0

  init(_ name: ByteString = "machine", start: ByteString) {
    definition = MachineDefinition(name: name, start: logic.step(start), steps: [])
  }

  private mutating func handlers(_ after: [After]) -> [MachineHandler] {
    after.map { after in
      places += 1
      let (event, transition): (Int?, MachineTransition<ByteString>)
      switch after {
      case .on(let name, let next): (event, transition) = (logic.events.add(name, name: name), next)
      case .next(let next): (event, transition) = (nil, next)
      }
      let numbered: MachineTransition<Int> =
        switch transition {
        case .forward(let to): .forward(to: logic.step(to))
        case .back(let to): .back(to: to.map { logic.step($0) })
        case .stay: .stay
        }
      return MachineHandler(on: event, numbered, place: places)
    }
  }

  /// A step with a closure; by default its result is nil.
  mutating func step(
    _ name: ByteString, _ after: After..., body: @escaping ScriptedLogic.Body = { _, _ in .null }
  ) {
    add(name, after, body)
  }

  mutating func add(
    _ name: ByteString, _ after: [After], _ body: @escaping ScriptedLogic.Body = { _, _ in .null }
  ) {
    let number = logic.step(name)
    logic.bodies[number] = body
    definition.steps.append(
      MachineStep(number, .logic, handlers: handlers(after), place: 100 + number))
  }

  /// A step that is an op.
  mutating func step(_ name: ByteString, _ op: Op, _ after: After...) {
    let number = logic.step(name)
    definition.steps.append(MachineStep(number, .op(op), handlers: handlers(after), place: 0))
  }

  mutating func anyStep(_ after: After...) { addAny(after) }

  mutating func addAny(_ after: [After]) {
    definition.steps.append(MachineStep(nil, .none, handlers: handlers(after), place: 0))
  }

  func make(retry: RetryPolicy? = nil, timeout: Duration? = nil) throws -> MachineOp {
    var definition = definition
    definition.hasReducer = logic.reducer != nil
    definition.hasEmitter = logic.emitter != nil
    definition.hasProvider = logic.provider != nil
    return try MachineOp(
      definition, logic: logic, steps: logic.steps.names, events: logic.events.names,
      policy: .make(nil, retry: retry, timeout: timeout))
  }

  /// The text of the error that `make` throws.
  func problem() -> String? {
    do {
      _ = try make()
      return nil
    } catch {
      return String(describing: error)
    }
  }
}

/// The lines of a run's transitions.
func transitions(_ run: Run) -> [String] {
  run.events.filter { $0.kind == .transition }.compactMap { $0.message?.description }
}

extension FlowValue {
  var integer: Int64? { Int64(flowValue: self) }
}

extension MapValue {
  static func state(_ fields: KeyValuePairs<ByteString, FlowValue>) -> FlowValue {
    .opaque(MapValue(fields.map { ($0.key, $0.value) }))
  }
}
