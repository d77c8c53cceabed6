/// The keys that an op or flow may set, according to its declarations.
enum PossibleWrites {
  static func of(_ op: Op) -> [DataWrite] {
    var result: [DataWrite] = []
    var seen: Set<ObjectIdentifier> = []
    var open: ContiguousArray<Op> = [op]
    while let next = open.popLast() {
      guard seen.insert(ObjectIdentifier(next)).inserted else { continue }
      for declared in next.declarations.gives {
        let source = ValueSource(declared.type.present, .op(next.nameBytes))
        result.append(DataWrite(key: declared.nameBytes, source: source))
      }
      guard let flow = next as? Flow else { continue }
      for (name, value) in flow.blueprint.data {
        let source = ValueSource(.value(value.plain), .data(flow.nameBytes, ObjectIdentifier(flow)))
        result.append(DataWrite(key: name, source: source))
      }
      for step in flow.blueprint.steps { add(step, &result, &open) }
      for step in flow.blueprint.finally { add(step, &result, &open) }
    }
    return result
  }

  private static func add(
    _ step: Step, _ result: inout [DataWrite], _ open: inout ContiguousArray<Op>
  ) {
    switch step.kind {
    case .op, .flow: open.append(step.op)
    case .parallel, .cases: break
    case .group(let dispatcher):
      // Members only set their own item's data.
      let collected = dispatcher.collect ?? step.op.primaryOutputBytes
      let type = step.op.gives.first { $0.nameBytes == collected }?.type ?? .any
      let provider = ValueSource.Provider.group(step.op.nameBytes)
      if let output = dispatcher.output {
        let type = dispatcher.itemType(type.present)
        result.append(DataWrite(key: output, source: ValueSource(type.list, provider)))
      }
      if let failures = dispatcher.failures {
        let source = ValueSource(FlowValueType.table.list, provider)
        result.append(DataWrite(key: failures, source: source))
      }
    }
  }
}

extension GroupDispatcher {
  /// The element type of the output list, for items whose outputs are of `type`.
  func itemType(_ type: FlowValueType) -> FlowValueType {
    guard let absent, !type.mayHold(absent.plain) else { return type }
    return .any
  }
}
