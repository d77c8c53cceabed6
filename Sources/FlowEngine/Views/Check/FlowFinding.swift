/// A finding of `Flow.check`.
///
/// ```swift
/// for finding in flow.check() where finding.severity == .error {
///   print(finding.op, finding.message)
/// }
/// ```
public struct FlowFinding: Sendable, Hashable {
  /// The severity of a finding.
  public enum Severity: Sendable {
    /// A run that reaches it fails, on some path at least.
    case error
    /// A run may succeed: the data depend on its path through the flow.
    case warning

    /// The name that scripts use.
    package var name: ByteString {
      switch self {
      case .error: "error"
      case .warning: "warning"
      }
    }
  }

  /// The severity.
  public let severity: Severity
  /// The name of the op or flow of the finding; `Cases` for a case.
  public let op: ByteString
  /// A sentence without a full stop that names keys, types and ops.
  public let message: ByteString

  /// Makes a finding about `op`.
  package init(_ severity: Severity, op: ByteString, _ message: ByteString) {
    self.severity = severity
    self.op = op
    self.message = message
  }
}

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
  public func check(data: InitialData? = nil) -> [FlowFinding] {
    if let circular = currentSnapshot()?.circular {
      return [
        FlowFinding(.error, op: circular.name, "flow '\(circular.name)' contains itself")
      ]
    }
    let checker = FlowChecker(self, data: data?.entries)
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
          .warning, op: name,
          "the event '\(logic.name(ofEvent: event))' never comes: the machine has no 'emit'"))
    }
    guard definition.hasReducer else { return findings }
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
