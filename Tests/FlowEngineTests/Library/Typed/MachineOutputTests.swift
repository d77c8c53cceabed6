import FlowEngine
import Testing

// The original example, whose result has a type of its own.

private enum MyFlowStep {
  case amount, invalidAmount, tariffs, confirmation, success, alert, finish
}

private enum MyFlowStepResult {
  case amount(Int)
  case tariff(String)
  case confirmation(Confirmation)
  case shown

  enum Confirmation { case `continue`, editAmount, editTariff }
}

private enum MyFlowState: Equatable {
  case country(String)
  case amount(Int, country: String)
  case tariff(String, amount: Int, country: String)
}

private struct Transfer: Equatable, Sendable {
  let amount: Int
  let tariff: String
  let country: String
}

private struct MyFlowDSL: MachineDSLBuilder {
  typealias Step = MyFlowStep
  typealias StepResult = MyFlowStepResult
  typealias State = MyFlowState
  enum Event {
    case invalidAmount, confirmationContinue, confirmationEditAmount, confirmationEditTariff, error
  }

  static func emitter(_ stepResult: MyFlowStepResult, _ state: MyFlowState) -> Event? {
    switch stepResult {
    case .amount(let amount) where amount < 100: .invalidAmount
    case .confirmation(.continue): .confirmationContinue
    case .confirmation(.editAmount): .confirmationEditAmount
    case .confirmation(.editTariff): .confirmationEditTariff
    default: nil
    }
  }

  static var dsl: MachineDSL<Self> {
    MachineDSL {
      emit(using: emitter)
      step {
        on(.error) { forward(to: .alert) }
      }
      step(.amount) {
        on(.invalidAmount) { forward(to: .invalidAmount) }
        next { forward(to: .tariffs) }
      }
      step(.tariffs) {
        next { forward(to: .confirmation) }
      }
      step(.confirmation) {
        on(.confirmationContinue) { forward(to: .success) }
        on(.confirmationEditAmount) { back(to: .amount) }
        on(.confirmationEditTariff) { back(to: .tariffs) }
      }
      step(.success) {
        next { forward(to: .finish) }
      }
    }
  }
}

// A description is Sendable when its steps and events are.
private let sharedDSL = MyFlowDSL.dsl

private struct MyFlowStateReducer: StateReducer {
  func reduce(
    _ state: MyFlowState, with result: MyFlowStepResult
  ) async throws -> Reduction<MyFlowState, Transfer> {
    switch (result, state) {
    case (.amount(let amount), .country(let country)):
      .continue(.amount(amount, country: country))
    case (.tariff(let tariff), .amount(let amount, let country)):
      .continue(.tariff(tariff, amount: amount, country: country))
    case (.shown, .tariff(let tariff, let amount, let country)):
      .finish(Transfer(amount: amount, tariff: tariff, country: country))
    default: .continue(state)
    }
  }
}

private struct MyFlowNavigator: TransitionNavigator {
  let confirmation: MyFlowStepResult.Confirmation

  func navigate(
    _ transition: MachineTransition<MyFlowStep>, to step: MyFlowStep, state: MyFlowState,
    context: OpContext
  ) async throws -> MyFlowStepResult {
    try await context.sleep(for: .seconds(1))
    switch step {
    case .amount: return .amount(200)
    case .tariffs: return .tariff("cheap")
    case .confirmation: return .confirmation(confirmation)
    default: return .shown
    }
  }
}

@Suite("Results of typed machines")
struct MachineOutputTests {
  private let loop = makeLoop()

  private func machine(
    _ confirmation: MyFlowStepResult.Confirmation = .continue, maxTransitions: Int = 100
  ) throws -> Machine<MyFlowStep, MyFlowStepResult, MyFlowState, Transfer> {
    try Machine(
      "transfer", start: .amount, navigator: MyFlowNavigator(confirmation: confirmation),
      reducer: MyFlowStateReducer(), provider: DeclarativeTransitionProvider(sharedDSL),
      maxTransitions: maxTransitions,
      givingData: { ["amount": $0.amount] })
  }

  private let expected = Transfer(amount: 200, tariff: "cheap", country: "DE")

  @Test("A machine finishes with a result of its own type, as a task")
  func finishesWithAResultOfItsOwnType() throws {
    let machine = try machine()
    let task: FlowTask<Transfer> = machine.start(from: .amount, with: .country("DE"), on: loop)
    #expect(task.finalResult() == expected)
    let run = machine.start(from: .amount, with: .country("DE"), on: loop)
    try run.wait()
    #expect(machine.result(of: run) == expected)
    // In a flow, too.
    let flow = Flow().add(machine).add(PrintOp("done"))
    let outer = flow.start(on: loop)
    #expect(outer.error?.message.description.contains("started without a state") == true)
    outer.markObserved()
  }

  @Test("The result of a machine is stored in the data of its run")
  func theResultIsStoredInTheData() throws {
    let run = try machine().start(with: .country("DE"), on: loop)
    try run.wait()
    #expect(run.data.integer("amount") == 200)
  }

  @Test("A stop of a machine's task stops its run")
  func aStopOfTheTaskStopsTheRun() throws {
    let machine = try machine()
    let run = machine.start(from: .amount, with: .country("DE"), on: loop)
    let task = machine.task(of: run)
    task.cancel()
    loop.runUntilIdle()
    #expect(run.state == .cancelled)
    #expect(task.state == .cancelled)
  }

  @Test("The task of another machine's run fails")
  func theTaskOfAnotherRunFails() throws {
    let task = try machine().task(of: PrintOp("x").start(on: loop))
    #expect(task.error?.message == "the run isn't one of machine 'transfer'")
    task.markObserved()
  }

  private struct Endless: StateReducer {
    func reduce(_ state: Int, with result: Int) async throws -> Reduction<Int, String> {
      result == 2 ? .finish("two") : .continue(result)
    }
  }

  private struct Echo: TransitionNavigator, TransitionProvider {
    func navigate(
      _ transition: MachineTransition<Int>, to step: Int, state: Int, context: OpContext
    ) async throws -> Int { step }

    func transition(from step: Int, result: Int, state: Int) async throws -> MachineTransition<Int>?
    {
      step == 1 ? .forward(to: 2) : nil
    }
  }

  @Test("A machine that ends without its reducer has no result of another type")
  func anEndWithoutTheReducerIsAFailure() async throws {
    let machine = try Machine(
      "numbers", start: 1, navigator: Echo(), reducer: Endless(), provider: Echo())
    #expect(machine.result(of: machine.start(with: 0, on: loop)) == "two")
    let run = machine.start(from: 3, with: 0, on: loop)
    #expect(
      run.error?.message
        == "the machine ended after step '3' without a result: its reducer has to finish it")
    run.markObserved()
    guard
      case .finish("two") = try await machine.transition(on: loop, after: 5, result: 2, state: 0)
    else {
      Issue.record("something else would follow")
      return
    }
  }

  private struct Silent<Output>: StateReducer {
    func reduce(_ state: Int, with result: Int) async throws -> Reduction<Int, Output> {
      .continue(result)
    }
  }

  @Test(
    "A machine that ends without its reducer has no result if its type permits that, and succeeds")
  func anEndWithoutTheReducerIsNoResult() throws {
    let none = try Machine(
      "numbers", start: 1, navigator: Echo(), reducer: Silent<Void>(), provider: Echo())
    #expect(none.result(of: none.start(with: 0, on: loop)) != nil)
    let maybe = try Machine(
      "numbers", start: 1, navigator: Echo(), reducer: Silent<String?>(), provider: Echo())
    #expect(maybe.result(of: maybe.start(with: 0, on: loop)) == .some(nil))
    let state = try Machine(
      "numbers", start: 1, navigator: Echo(), reducer: Silent<Int>(), provider: Echo())
    #expect(state.result(of: state.start(with: 0, on: loop)) == 2)
  }

  private struct Words: TransitionNavigator, TransitionProvider {
    func navigate(
      _ transition: MachineTransition<Int>, to step: Int, state: Int, context: OpContext
    ) async throws -> String { "\(state)" }

    func transition(
      from step: Int, result: String, state: Int
    ) async throws -> MachineTransition<Int>? { step < 3 ? .forward(to: step + 1) : nil }
  }

  @Test("Without a reducer the state stays, whatever the steps return")
  func withoutAReducerTheStateStays() throws {
    let machine = try Machine("words", start: 1, navigator: Words(), provider: Words())
    #expect(machine.result(of: machine.start(with: 7, on: loop)) == 7)
  }

  private struct Help: MachineDSLBuilder, TransitionNavigator {
    typealias Step = Int
    typealias StepResult = Int
    typealias State = Int
    enum Event { case help }

    static var dsl: MachineDSL<Self> {
      MachineDSL {
        emit(using: { result, _ in result == 1 ? .help : nil })
        step {
          on(.help) { forward(to: 8) }
        }
        step(1) {
          on(.help) { forward(to: 9) }
        }
      }
    }

    func navigate(
      _ transition: MachineTransition<Int>, to step: Int, state: Int, context: OpContext
    ) async throws -> Int { step }
  }

  @Test(
    "Transitions of the any-step come after a step's own, or before them", arguments: [false, true])
  func anyStep(comesFirst: Bool) async throws {
    let provider = DeclarativeTransitionProvider(Help.dsl, anyStepFirst: comesFirst)
    let machine = try Machine("help", start: 1, navigator: Help(), provider: provider)
    let run = machine.start(with: 0, on: loop)
    try await run.wait()
    #expect(machine.history(of: run) == [1, comesFirst ? 8 : 9])
    let called = try await provider.transition(from: 1, result: 1, state: 0)
    #expect(called?.step == (comesFirst ? 8 : 9))
  }

  @Test("A DSL alone is drawn as in the original")
  func aDSLAloneIsDrawn() {
    #expect(MyFlowDSL.dsl.dot() == transferDOT)
    #expect(
      MyFlowDSL.dsl.dot(MachineDOTOptions(direction: .topToBottom))
        .contains("\trankdir=TB\n"))
  }
}
