extension MachineDSL {
  /// The steps and transitions in DOT, the language of Graphviz, as those of a machine made with them; see
  /// `MachineOp.dot`.
  ///
  /// Source: the seed's `DOTBuilder` (FlowKit).
  public func dot(_ options: MachineDOTOptions = MachineDOTOptions()) -> String {
    let transitions = DeclarativeTransitionProvider(self).transitions
    let logic = TypedMachineLogic<Builder.Step, Builder.StepResult, Builder.State, Builder.State>(
      transitions.names, events: transitions.events.names)
    let definition = MachineDefinition(name: "", start: 0, steps: transitions.steps)
    return MachineGraph(MachineBlueprint(definition, logic)).dot(options).description
  }
}
