extension Op {
  /// The same op with another body: an op class binds arguments with it. Name and declarations are
  /// shared. For a flow, which has no body, the result is an op that runs `body` under the flow's
  /// name.
  ///
  /// - Parameters:
  ///   - body: The body.
  ///   - undo: Another undo; nil keeps the present one.
  /// - Returns: The op.
  package func withBody(_ body: any OpBody, undo: (any OpBody)? = nil) -> Op {
    Op(
      copying: self, name: nameBytes, body: body, declarations: declarations,
      policy: undo == nil ? policy : .make(policy, undo: undo))
  }
}

extension Flow {
  /// Whether another flow is a step of this one, at any depth.
  package func contains(_ other: Flow) -> Bool {
    // A flow that was never added to another is no step of this one: building from the inside out
    // is therefore fast.
    if !other.isStep { return false }
    var seen: Set<ObjectIdentifier> = [ObjectIdentifier(self)]
    var open = [self]
    while let flow = open.popLast() {
      for inner in flow.blueprint.nested {
        if inner === other { return true }
        if seen.insert(ObjectIdentifier(inner)).inserted { open.append(inner) }
      }
    }
    return false
  }

  /// Adds initial data in this order, with keys of any bytes.
  @discardableResult @_disfavoredOverload
  package func data(_ entries: [(ByteString, FlowValue)]) -> Flow {
    for (name, value) in entries { data(name, value) }
    return self
  }
}
