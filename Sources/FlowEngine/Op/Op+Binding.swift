extension Op {
  /// The same op with another body: how an op class binds arguments. Name and declarations are
  /// shared. Of a flow, which has no body, it is an op that runs `body` under the flow's name.
  public func withBody(_ body: any OpBody) -> Op {
    Op(copying: self, name: name, body: body, declarations: declarations, policy: policy)
  }
}

extension Flow {
  /// Whether another flow is, however deep, a step of this one.
  public func contains(_ other: Flow) -> Bool {
    // What was never a step of anything is no step of this: so building from the inside out is fast.
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

  /// Adds data to begin with, in this order.
  @discardableResult
  public func data(_ entries: [(ByteString, Value)]) -> Flow {
    for (name, value) in entries { data(name, value) }
    return self
  }
}
