import FlowEngine
import Testing

// FlowKit's example, in Swift.

private enum TransferStep {
  case amount, invalidAmount, tariffs, confirmation, success, alert, finish
}

private enum TransferResult {
  case amount(Int)
  case tariff(String)
  case confirmation(String)
  case done
}

private struct TransferState: Equatable {
  var amount = 0
  var tariff = ""
  var log: [String] = []
}

private struct TransferDSL: MachineDSLBuilder {
  typealias Step = TransferStep
  typealias StepResult = TransferResult
  typealias State = TransferState
  enum Event { case invalidAmount, confirmationContinue, confirmationEditAmount, error }

  static var dsl: MachineDSL<Self> {
    MachineDSL {
      emit { result, state in
        switch result {
        case .amount(let amount) where amount < 100: .invalidAmount
        case .confirmation("continue"): .confirmationContinue
        case .confirmation("edit"): .confirmationEditAmount
        case .confirmation: .error
        default: nil
        }
      }
      step { on(.error) { forward(to: .alert) } }
      step(.amount) {
        on(.invalidAmount) { forward(to: .invalidAmount) }
        next { forward(to: .tariffs) }
      }
      step(.invalidAmount) { next { back() } }
      step(.tariffs) { next { forward(to: .confirmation) } }
      step(.confirmation) {
        on(.confirmationContinue) { forward(to: .success) }
        on(.confirmationEditAmount) { back(to: .amount) }
      }
      step(.success) { next { forward(to: .finish) } }
    }
  }
}

private func transfer(
  amounts: [Int], confirmations: [String]
) throws -> Machine<TransferStep, TransferResult, TransferState, TransferState> {
  var amounts = amounts
  var confirmations = confirmations
  let navigator = DeclarativeNavigator<TransferStep, TransferResult, TransferState> {
    Perform(.amount) { state, context in
      try await context.sleep(for: .seconds(1))
      return .amount(amounts.removeFirst())
    }
    Perform(.invalidAmount) { _, _ in .done }
    Perform(.tariffs, Op("TariffOp") { $0.set("tariff", "cheap") }) { data in
      .tariff(data.string("tariff") ?? "")
    }
    Perform(.confirmation) { _, _ in .confirmation(confirmations.removeFirst()) }
    Perform(.success) { _, _ in .done }
    Perform(.alert) { _, _ in .done }
    Perform(.finish) { _, _ in .done }
  }
  let reducer = DeclarativeStateReducer<TransferResult, TransferState, TransferState> {
    state, result in
    var state = state
    switch result {
    case .amount(let amount): state.amount = amount
    case .tariff(let tariff): state.tariff = tariff
    case .confirmation("stop"): return .finish(state)
    default: break
    }
    return .continue(state)
  }
  return try Machine(
    "transfer", start: .amount, navigator: navigator, reducer: reducer,
    provider: DeclarativeTransitionProvider(TransferDSL.dsl),
    takingState: { TransferState(amount: Int($0.integer("amount") ?? 0)) },
    givingData: { ["tariff": $0.tariff] })
}

@Suite("Typed machines")
struct TypedMachineTests {
  let loop = makeLoop()

  @Test("The original example runs")
  func theSeedsExampleRuns() throws {
    let machine = try transfer(amounts: [50, 200, 300], confirmations: ["edit", "continue"])
    let run = machine.start(with: TransferState(), on: loop)
    try run.wait()
    #expect(machine.result(of: run) == TransferState(amount: 300, tariff: "cheap"))
    #expect(
      transitions(run) == [
        "amount -> invalidAmount on invalidAmount", "invalidAmount -> amount", "amount -> tariffs",
        "tariffs -> confirmation", "confirmation -> amount on confirmationEditAmount",
        "amount -> tariffs", "tariffs -> confirmation",
        "confirmation -> success on confirmationContinue", "success -> finish",
      ])
    #expect(run.duration == .seconds(3))
    #expect(machine.op.dot().description.contains("\tinvalidAmount -> amount\n"))
  }

  @Test("A typed machine continues with a result from elsewhere")
  func continuesWithAResultFromElsewhere() throws {
    let machine = try transfer(amounts: [], confirmations: ["stop"])
    let run = machine.continue(
      on: loop, after: .tariffs, result: .tariff("server"), state: TransferState(amount: 1))
    try run.wait()
    #expect(machine.result(of: run) == TransferState(amount: 1, tariff: "server"))
  }

  @Test("A typed machine begins at a saved step with its history")
  func beginsAtASavedStepWithItsHistory() throws {
    let saved = TransferState(amount: 200, tariff: "cheap")
    var machine = try transfer(amounts: [300], confirmations: ["edit", "stop"])
    var run = machine.start(
      from: .confirmation, with: saved, on: loop, history: [.amount, .tariffs])
    try run.waitUntilEnd()
    #expect(machine.result(of: run) == TransferState(amount: 300, tariff: "cheap"))
    #expect(machine.history(of: run) == [.amount, .tariffs, .confirmation])
    #expect(run.history == ["amount", "tariffs", "confirmation"])
    #expect(body(run).contains { $0.hasPrefix("[transfer] state: TransferState(") })

    // Without it nothing is there to go back to; the machine continues at its last entry.
    machine = try transfer(amounts: [], confirmations: ["edit", "stop"])
    run = machine.start(from: .confirmation, with: saved, on: loop)
    #expect(run.error?.message.description.contains("which wasn't entered before") == true)
    run.markObserved()
    run = machine.start(with: saved, on: loop, history: machine.history(of: run))
    try run.waitUntilEnd()
    #expect(machine.result(of: run) == saved)
    #expect(machine.history(of: run) == [.confirmation])
    #expect(Op("PlainOp") { _ in }.start(on: loop).history == nil)
  }

  @Test("A typed machine returns the next transition without performing it")
  func saysWhatWouldFollowAndPerformsNothing() async throws {
    let machine = try transfer(amounts: [], confirmations: [])
    let state = TransferState(amount: 1)
    func next(
      _ step: TransferStep, _ result: TransferResult
    ) async throws -> MachineDecision<TransferStep, TransferState, TransferState> {
      try await machine.transition(on: loop, after: step, result: result, state: state)
    }
    guard case .go(.forward(to: .invalidAmount), let small) = try await next(.amount, .amount(5)),
      case .go(.back(to: nil), _) = try await next(.invalidAmount, .done),
      case .finish(let stopped) = try await next(.confirmation, .confirmation("stop")),
      case .finish = try await next(.finish, .done)
    else {
      Issue.record("something else would follow")
      return
    }
    #expect(small == TransferState(amount: 5))
    #expect(stopped == state)
    await #expect(throws: FlowError.self) { _ = try await next(.confirmation, .done) }
  }

  private struct EndingDSL: MachineDSLBuilder {
    typealias Step = Int
    typealias StepResult = Int
    typealias State = Int
    enum Event { case never }

    static var dsl: MachineDSL<Self> {
      MachineDSL {
        step { next { forward(to: 3) } }
        step(1) { on(.never) { forward(to: 2) } }
        finalStep(3)
      }
    }
  }

  @Test("Final steps end a typed machine, and missing ones are found")
  func finalStepsEndItAndOthersAreFound() throws {
    let machine = try Machine(
      "ending", start: 1, navigator: Numbers(), reducer: Numbers(),
      provider: DeclarativeTransitionProvider(EndingDSL.dsl))
    let run = machine.start(with: 0, on: loop)
    try run.wait()
    #expect(transitions(run) == ["1 -> 3"])
    #expect(machine.check().isEmpty)
    let other = try transfer(amounts: [], confirmations: [])
    #expect(
      other.check().map(\.message) == [
        "step 'alert' has no way on and isn't marked as final",
        "step 'finish' has no way on and isn't marked as final",
      ])
    #expect(other.check().allSatisfy { $0.severity == .warning && $0.op == "transfer" })
  }

  @Test("A typed machine reads and writes data in flows")
  func takesAndGivesDataInFlows() throws {
    let machine = try transfer(amounts: [100], confirmations: ["strange"])
    let flow = Flow("f") { machine }.data("amount", 5)
    let run = flow.start(on: loop)
    try run.wait()
    #expect(run.data.string("tariff") == "cheap")
    #expect(body(run).contains("[transfer] confirmation -> alert on error"))
  }

  @Test("The roles of a typed machine can be called directly")
  func rolesCanBeAskedThemselves() async throws {
    let provider = DeclarativeTransitionProvider(TransferDSL.dsl)
    let state = TransferState()
    #expect(
      try await provider.transition(from: .amount, result: .amount(5), state: state)
        == .forward(to: .invalidAmount))
    #expect(
      try await provider.transition(from: .invalidAmount, result: .done, state: state)
        == .back(to: nil))
    #expect(try await provider.transition(from: .finish, result: .done, state: state) == nil)
    await #expect(throws: FlowError.self) {
      try await provider.transition(from: .confirmation, result: .done, state: state)
    }
  }

  private struct Numbers: TransitionNavigator, StateReducer, TransitionProvider {
    func navigate(
      _ transition: MachineTransition<Int>, to step: Int, state: Int, context: OpContext
    ) async throws -> Int {
      context.log("\(transition.kindName) \(step)")
      try await context.sleep(for: .seconds(1))
      return step * 10
    }

    func reduce(_ state: Int, with result: Int) async throws -> Reduction<Int, Int> {
      .continue(state + result)
    }

    func transition(from step: Int, result: Int, state: Int) async throws -> MachineTransition<Int>?
    {
      state > 70 ? nil : state == 30 ? .back(to: nil) : .forward(to: step + 1)
    }
  }

  @Test("Steps from a provider need no declaration")
  func stepsOfAProviderNeedNotBeDeclared() throws {
    let machine = try Machine(
      "numbers", start: 1, navigator: Numbers(), reducer: Numbers(), provider: Numbers())
    let run = machine.start(with: 0, on: loop)
    try run.waitUntilEnd()
    #expect(transitions(run) == ["1 -> 2", "2 -> 1", "1 -> 2", "2 -> 3"])
    #expect(machine.result(of: run) == 90)
    #expect(body(run).contains("[numbers] back 1"))

    let stopped = machine.start(with: 0, on: loop)
    stopped.cancel()
    try stopped.waitUntilEnd()
    #expect(stopped.state == .cancelled)
    #expect(machine.result(of: stopped) == nil)
  }

  @Test("A typed machine needs a state in flows too")
  func aStateIsNeededInFlowsToo() throws {
    let machine = try Machine(
      "numbers", start: 1, navigator: Numbers(), provider: Numbers())
    let run = Flow("f") { machine }.start(on: loop)
    #expect(
      run.error?.message
        == "a machine was started without a state: it doesn't take one of data")
    run.markObserved()
  }
}
