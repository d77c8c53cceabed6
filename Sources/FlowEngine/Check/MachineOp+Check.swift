extension MachineOp {
  /// Looks for what is probably a mistake in the definition, and performs nothing.
  ///
  /// With a function that reduces results, which may end the machine at any step, a step that has no way
  /// on may have been forgotten: it is a warning, unless the step is marked as final. Where a function
  /// says the transitions, nothing is known of them.
  ///
  /// - Returns: What was found, in the order of the steps.
  public func check() -> [FlowFinding] {
    let definition = blueprint.definition
    if definition.hasProvider || !definition.hasReducer { return [] }
    var findings: [FlowFinding] = []
    for step in definition.steps {
      guard let number = step.number, !step.isFinal, step.handlers.isEmpty,
        blueprint.table.handler(after: number, on: nil) == nil
      else { continue }
      findings.append(
        FlowFinding(
          .warning, op: name,
          "step '\(logic.name(ofStep: number))' has no way on and isn't marked as final"))
    }
    return findings
  }
}
