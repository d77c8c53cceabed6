extension Run {
  /// The finish value, unless only the machine's own functions understand it.
  package var plainFinishValue: FlowValue? {
    (op as? MachineOp)?.logic.hasPlainStates == true ? finishValue : nil
  }

  /// The names of the steps that a machine has entered, the present or last one included, for a run
  /// of a machine; nil for any other run. `MachineOp.start` takes them to continue there.
  package var history: [ByteString]? {
    loop.checkThread()
    guard let logic = (op as? MachineOp)?.logic else { return nil }
    return enteredSteps?.map { logic.name(ofStep: $0) }
  }

  /// The numbers of the same steps.
  var enteredSteps: [Int]? {
    endedHistory?.entered ?? (execution?.context.state as? MachineExecution)?.enteredSteps
  }
}

extension OpContext {
  /// The names of the steps that this op's machine has entered, the present one included; nil for
  /// any other op, and after the machine has ended.
  package var history: [ByteString]? { (state as? MachineExecution)?.enteredNames }
}
