/// Why a machine can't be made.
///
/// ```swift
/// do {
///   _ = try Machine(
///     "transfer", start: MyStep.amount, navigator: MyNavigator(), reducer: MyReducer(),
///     provider: DeclarativeTransitionProvider(TransferDSL.dsl))
/// } catch { print(error.message) }
/// ```
public struct MachineProblem: Error, CustomStringConvertible {
  /// The problem in words.
  public let message: ByteString
  /// The place of the problem; see `MachineLogic.position(of:)`. Negative for the machine as a
  /// whole.
  package let place: Int

  init(_ message: ByteString, at place: Int = -1) {
    self.message = message
    self.place = place
  }

  public var description: String { message.description }
}

extension MachineDefinition {
  /// The problem of the definition; nil when a machine can be made from it.
  ///
  /// - Parameters:
  ///   - steps: The names of the steps, by their numbers.
  ///   - events: The names of the events, by their numbers.
  /// - Returns: The first problem found.
  package func problem(steps: [ByteString], events: [ByteString]) -> MachineProblem? {
    let check = MachineCheck(definition: self, names: steps, events: events)
    return check.steps() ?? check.handlers() ?? check.unreachableNext() ?? check.unreachableStep()
  }
}

extension MachineDefinition {
  /// The declared step whose name is the nearest to another one's, as the end of a message; empty when none is
  /// near.
  func hint(for step: Int, _ name: (Int) -> ByteString) -> ByteString {
    let known = steps.compactMap(\.number).map(name)
    return NearestName.of(name(step), in: known).map { " (did you mean '\($0)'?)" }
      ?? ""
  }
}

/// Searches a definition for problems.
private struct MachineCheck {
  let definition: MachineDefinition
  let names: [ByteString]
  let events: [ByteString]

  private func shown(_ step: MachineStep) -> ByteString {
    step.number.map { "step '\(names[$0])'" } ?? "the any-step"
  }

  private func hint(_ step: Int) -> ByteString { definition.hint(for: step) { names[$0] } }

  private var declared: Set<Int> { Set(definition.steps.compactMap(\.number)) }

  func steps() -> MachineProblem? {
    var seen: Set<Int?> = []
    for step in definition.steps {
      guard seen.insert(step.number).inserted else {
        let text: ByteString =
          step.number == nil ? "two any-steps" : "\(shown(step)) is there twice"
        return MachineProblem(text, at: step.place)
      }
      switch step.action {
      case .none where step.number != nil && !definition.hasNavigator:
        return MachineProblem("\(shown(step)) has nothing to run", at: step.place)
      case .op where definition.hasNavigator, .logic where definition.hasNavigator:
        return MachineProblem(
          "\(shown(step)) has something to run, but the navigator performs all steps",
          at: step.place)
      default: break
      }
    }
    if definition.isOpen { return nil }
    if seen.subtracting([nil]).isEmpty { return MachineProblem("a machine without steps") }
    if !seen.contains(definition.start) {
      return MachineProblem(
        "the start '\(names[definition.start])' is no step\(hint(definition.start))")
    }
    return nil
  }

  func handlers() -> MachineProblem? {
    let declared = declared
    for step in definition.steps {
      var handled: Set<Int?> = []
      for handler in step.handlers {
        if step.isFinal, handler.event == nil {
          return MachineProblem("\(shown(step)) is final, but has a next", at: handler.place)
        }
        if definition.hasProvider {
          return MachineProblem(
            "\(shown(step)) has transitions, but they are provided by a function",
            at: handler.place)
        }
        guard handled.insert(handler.event).inserted else {
          let text: ByteString =
            handler.event.map { "\(shown(step)) handles event '\(events[$0])' twice" }
            ?? "the second next of \(shown(step)) can't be reached"
          return MachineProblem(text, at: handler.place)
        }
        if let target = handler.transition.step, !declared.contains(target) {
          return MachineProblem(
            """
            \(shown(step)): \(handler.transition.kindName) to unknown step '\(names[target])'\(hint(target))
            """, at: handler.place)
        }
      }
    }
    return nil
  }

  private func next(of step: MachineStep) -> MachineHandler? {
    step.handlers.first { $0.event == nil }
  }

  /// A transition without an event that another one always precedes.
  func unreachableNext() -> MachineProblem? {
    guard let any = definition.steps.first(where: { $0.number == nil }), let last = next(of: any)
    else { return nil }
    let steps = definition.steps.filter { $0.number != nil }
    if definition.triesAnyStepFirst {
      for step in steps {
        guard let next = next(of: step) else { continue }
        return MachineProblem(
          "the next of \(shown(step)) can't be reached: the any-step's comes first",
          at: next.place)
      }
      return nil
    }
    guard steps.allSatisfy({ next(of: $0) != nil || $0.isFinal }) else { return nil }
    return MachineProblem(
      "the next of the any-step can't be reached: every step has one of its own or is final",
      at: last.place)
  }

  /// A step that no transition leads to. A step that only a `back` leads to was never entered.
  func unreachableStep() -> MachineProblem? {
    if definition.hasProvider { return nil }
    var reached: Set<Int> = [definition.start]
    var open = [definition.start]
    let byNumber = Dictionary(
      definition.steps.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    func follow(_ step: MachineStep?) {
      for handler in step?.handlers ?? [] {
        guard case .forward(let target) = handler.transition else { continue }
        if reached.insert(target).inserted { open.append(target) }
      }
    }
    follow(byNumber[nil])
    while let number = open.popLast() { follow(byNumber[number]) }
    for step in definition.steps {
      guard let number = step.number, !reached.contains(number) else { continue }
      return MachineProblem(
        "\(shown(step)) can't be reached: no transition leads there", at: step.place)
    }
    return nil
  }
}
