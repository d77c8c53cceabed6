import FlowEngine
import Testing

// Random machines against a model that knows nothing of the engine: a loop over a dictionary.

/// A visit of a random machine: what reduce says, and which event there is.
private struct Visit {
  enum Reduce { case go, finish, retry }

  let reduce: Reduce
  let event: Int?
}

private struct RandomMachine {
  var names: [ByteString] = []
  /// By step: handlers by event, nil for next.
  var handlers: [[(event: Int?, transition: MachineTransition<Int>)]] = []
  var any: [(event: Int?, transition: MachineTransition<Int>)] = []
  var anyFirst = false
  var visits: [Visit] = []
  var limit = 0
  let events = 3

  init(_ random: inout SeededGenerator) {
    let count = Int.random(in: 1...5, using: &random)
    names = (0..<count).map { "s\($0)" }
    anyFirst = Bool.random(using: &random)
    limit = Int.random(in: 1...40, using: &random)
    func transition() -> MachineTransition<Int> {
      switch Int.random(in: 0..<8, using: &random) {
      case 0: .stay
      case 1: .back(to: nil)
      case 2: .back(to: Int.random(in: 0..<count, using: &random))
      default: .forward(to: Int.random(in: 0..<count, using: &random))
      }
    }
    func list() -> [(event: Int?, transition: MachineTransition<Int>)] {
      var list: [(event: Int?, transition: MachineTransition<Int>)] = []
      for event in 0..<events where Int.random(in: 0..<3, using: &random) == 0 {
        list.append((event, transition()))
      }
      if Int.random(in: 0..<4, using: &random) > 0 { list.append((nil, transition())) }
      return list
    }
    for _ in 0..<count { handlers.append(list()) }
    any = list().filter { $0.event != nil }
    for _ in 0..<60 {
      let reduce: Visit.Reduce =
        switch Int.random(in: 0..<20, using: &random) {
        case 0: .finish
        case 1, 2: .retry
        default: .go
        }
      let event =
        Int.random(in: 0..<3, using: &random) == 0
        ? Int.random(in: 0..<events, using: &random) : nil
      visits.append(Visit(reduce: reduce, event: event))
    }
  }

  /// Models a run: its lines, what it performs with which state, and how it ends.
  func model() -> (lines: [String], performed: [String], end: String) {
    var lines: [String] = []
    var performed: [String] = []
    var history: [(step: Int, result: Int, state: Int)] = [(0, 0, 0)]
    var (state, result, count, reduced) = (0, 0, 0, 0)
    var isToPerform = true
    while true {
      let step = history[history.count - 1].step
      if isToPerform {
        result = performed.count + 1
        performed.append("\(names[step]) \(state)")
      }
      history[history.count - 1] = (step, result, state)
      let visit = visits[reduced % visits.count]
      reduced += 1
      if visit.reduce == .finish { return (lines, performed, "finished \(state)") }
      if visit.reduce == .retry {
        if count == limit { return (lines, performed, "exceeded") }
        count += 1
        isToPerform = history.count == 1
        if history.count > 1 {
          history.removeLast()
          result = history[history.count - 1].result
          state = history[history.count - 1].state
        }
        lines.append("retry \(names[history[history.count - 1].step])")
        continue
      }
      state = state * 7 % 1000 + result
      isToPerform = true
      let own = handlers[step].first { $0.event == visit.event }
      let general = any.first { $0.event == visit.event }
      guard let found = anyFirst ? general ?? own : own ?? general else {
        if visit.event != nil { return (lines, performed, "unhandled event") }
        return (lines, performed, handlers[step].isEmpty ? "finished \(state)" : "unhandled")
      }
      var next = history
      switch found.transition {
      case .stay: break
      case .forward(let target): next.append((target, 0, 0))
      case .back(nil):
        if history.count < 2 { return (lines, performed, "no history") }
        next.removeLast()
      case .back(let target?):
        guard let index = history.dropLast().lastIndex(where: { $0.step == target }) else {
          return (lines, performed, "never entered")
        }
        next.removeLast(next.count - index - 1)
      }
      if count == limit { return (lines, performed, "exceeded") }
      count += 1
      history = next
      let suffix = visit.event.map { " on e\($0)" } ?? ""
      lines.append("\(names[step]) -> \(names[history[history.count - 1].step])\(suffix)")
    }
  }

  /// Whether the machine can be made: whether all steps are reached.
  var isConnected: Bool {
    var reached: Set<Int> = [0]
    var open = [0]
    func follow(_ list: [(event: Int?, transition: MachineTransition<Int>)]) {
      for case .forward(let target) in list.map(\.transition)
      where reached.insert(target).inserted { open.append(target) }
    }
    follow(any)
    while let next = open.popLast() { follow(handlers[next]) }
    return reached.count == names.count
  }

  func named(_ transition: MachineTransition<Int>) -> MachineTransition<ByteString> {
    transition.map { names[$0] }
  }

  func after(_ list: [(event: Int?, transition: MachineTransition<Int>)]) -> [After] {
    list.map { entry in
      entry.event.map { .on("e\($0)", named(entry.transition)) } ?? .next(named(entry.transition))
    }
  }
}

@Suite("Random machines against a model")
struct MachineModelTests {
  @Test("Random machines behave as the model does", arguments: [0.0, 0.25])
  func machinesDoWhatTheModelDoes(wait: Double) throws {
    var ends: Set<String> = []
    for seed in RandomFlows.firstSeed..<RandomFlows.firstSeed + RandomFlows.count(1500) {
      var random = SeededGenerator(state: seed)
      let machine = RandomMachine(&random)
      var script = MachineScript(start: machine.names[0])
      script.definition.triesAnyStepFirst = machine.anyFirst
      script.definition.maxTransitions = machine.limit
      script.logic.wait = wait
      var performed: [String] = []
      let logic = script.logic
      for (index, name) in machine.names.enumerated() {
        script.add(name, machine.after(machine.handlers[index])) { state, call in
          performed.append("\(call.logic?.name(ofStep: call.step) ?? "") \(state.integer ?? -1)")
          return .integer(Int64(performed.count))
        }
      }
      if !machine.any.isEmpty { script.addAny(machine.after(machine.any)) }
      // The visit is counted where it is reduced.
      var visit = -1
      logic.reducer = { state, result in
        visit += 1
        switch machine.visits[visit % machine.visits.count].reduce {
        case .finish: return .finish(state)
        case .retry: return .retry
        case .go:
          return .continue(.integer(((state.integer ?? 0) * 7) % 1000 + (result.integer ?? 0)))
        }
      }
      logic.emitter = { _, _ in
        machine.visits[visit % machine.visits.count].event.map { "e\($0)" }
      }
      guard machine.isConnected else {
        #expect(script.problem() != nil, "seed \(seed)")
        continue
      }
      let run = try script.make().start(on: makeLoop(), from: .integer(0))
      try run.waitUntilEnd()
      let model = machine.model()
      #expect(transitions(run) == model.lines, "seed \(seed)")
      #expect(performed == model.performed, "seed \(seed)")
      let message = run.error?.message.description
      let end =
        switch message {
        case nil: "finished \(run.finishValue?.integer ?? -1)"
        case let text? where text.contains("on event"): "unhandled event"
        case let text? where text.contains("without an event"): "unhandled"
        case let text? where text.contains("empty history"): "no history"
        case let text? where text.contains("wasn't entered"): "never entered"
        default: "exceeded"
        }
      #expect(end == model.end, "seed \(seed): \(message ?? "")")
      ends.insert(String(end.prefix { $0 != " " || end.hasPrefix("un") }))
    }
    // All ends have come.
    #expect(ends.count >= 6)
  }
}
