extension Flow {
  /// Finds, without running anything, what will go wrong in a run of the flow.
  ///
  /// Errors are keys that are needed and that nothing before provides, or not on every path, and
  /// values that can't be of the type that is needed; warnings when an op before declares no
  /// `gives`, as it may set anything. Warnings are cases that can't match, keys that two members of
  /// a parallel step give, and ops whose name doesn't end in `Op`. Said twice is said once.
  ///
  /// Each step is checked as if those before it had succeeded, with what they declare; a flow that is
  /// tried again, as for its first attempt. Functions aren't called, neither predicates of cases nor
  /// types: a type with a function may be any. Of the data given, the values themselves are looked
  /// at. Called on the thread of the flow's ops.
  ///
  /// - Parameter data: What a run would be given. The flow's own needs are only looked for when it
  ///   isn't nil; else they count as given.
  /// - Returns: What was found, in the order of the steps.
  public func check(data: [(ByteString, Value)]? = nil) -> [FlowFinding] {
    if let circular = currentSnapshot()?.circular {
      return [
        FlowFinding(.error, op: circular.name, "flow '\(circular.name)' contains itself")
      ]
    }
    let checker = FlowChecker(self, data: data)
    BlueprintWalker.walk(self, checker)
    return checker.findings
  }

  /// The flows within that are steps in more than one place.
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
