extension Flow {
  /// Finds errors of a run of the flow in advance, without running anything.
  ///
  /// Errors are needed keys that no earlier step provides, or not on every path, and values that
  /// can't be of the needed type. They become warnings when an earlier op declares no `gives`,
  /// because it may set anything. Further warnings are cases that can't match, keys that two
  /// members of a parallel step give, and ops whose name doesn't end in `Op`. Equal findings are
  /// reported once.
  ///
  /// Each step is checked as if those before it had succeeded, with the data that they declare; a
  /// flow with retries, as for its first attempt. Neither predicates of cases nor functions of
  /// types are called: a type with a function may be any type. Initial data are checked by their
  /// values. Called on the thread of the flow's ops.
  ///
  /// - Parameter data: The initial data of a run. The flow's own needs are checked only if it isn't
  ///   nil; else they count as present.
  /// - Returns: The findings, in the order of the steps.
  public func check(data: InitialData? = nil) -> [FlowFinding] { check(bytes: data?.entries) }

  /// The same with data whose keys may have any bytes.
  package func check(bytes data: [(ByteString, FlowValue)]?) -> [FlowFinding] {
    if let circular = currentSnapshot()?.circular {
      return [
        FlowFinding(.error, op: circular.nameBytes, "flow '\(circular.nameBytes)' contains itself")
      ]
    }
    let checker = FlowChecker(self, data: data)
    BlueprintWalker.walk(self, checker)
    return checker.findings
  }

  /// The nested flows that are steps in more than one place.
  func flowsUsedTwice() -> Set<ObjectIdentifier> {
    var seen: Set<ObjectIdentifier> = []
    var twice: Set<ObjectIdentifier> = []
    var open = [self]
    while let flow = open.popLast() {
      for inner in flow.blueprint.nested {
        if seen.insert(ObjectIdentifier(inner)).inserted {
          open.append(inner)
        } else {
          twice.insert(ObjectIdentifier(inner))
        }
      }
    }
    return twice
  }
}
