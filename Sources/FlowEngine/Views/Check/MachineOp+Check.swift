extension MachineOp {
  /// Searches the definition for probable mistakes, without performing anything.
  ///
  /// If the machine has a reducer, which may end it at any step, a step without transitions may be
  /// an oversight: it gets a warning, unless it is marked as final. If a function chooses the
  /// transitions, nothing is known of them. A transition on an event is never taken without an emitter,
  /// which is a warning for machines of scripts.
  ///
  /// - Returns: The findings, in the order of the steps.
  public func check() -> [FlowFinding] {
    let definition = blueprint.definition
    if definition.hasProvider { return [] }
    var findings: [FlowFinding] = []
    if definition.namesEvents, !definition.hasEmitter,
      let event = definition.steps.lazy.flatMap(\.handlers).compactMap(\.event).first
    {
      findings.append(
        FlowFinding(
          .warning, op: nameBytes,
          "the event '\(logic.name(ofEvent: event))' never comes: the machine has no 'emit'"))
    }
    guard definition.hasReducer else { return findings }
    for step in definition.steps {
      guard let number = step.number, !step.isFinal, step.handlers.isEmpty,
        blueprint.table.handler(after: number, on: nil) == nil
      else { continue }
      findings.append(
        FlowFinding(
          .warning, op: nameBytes,
          "step '\(logic.name(ofStep: number))' has no way on and isn't marked as final"))
    }
    return findings
  }
}
