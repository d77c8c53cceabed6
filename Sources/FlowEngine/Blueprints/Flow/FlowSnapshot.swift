internal import Synchronization

/// The blueprints of a flow and of all nested flows at the start of a run.
final class FlowSnapshot {
  private let blueprints: [ObjectIdentifier: Blueprint]
  fileprivate let changes: UInt64
  /// The flow that contains itself, if one does.
  let circular: Flow?

  fileprivate init(_ root: Flow, changes: UInt64) {
    self.changes = changes
    var blueprints: [ObjectIdentifier: Blueprint] = [:]
    var open: Set<ObjectIdentifier> = []
    // Flows that are being visited, each with its next nested flow: depth first, so that a flow
    // that is found while it is open contains itself.
    var path: ContiguousArray<(flow: Flow, next: Int)> = []
    var circular: Flow?

    func visit(_ flow: Flow) {
      blueprints[ObjectIdentifier(flow)] = flow.blueprint
      open.insert(ObjectIdentifier(flow))
      path.append((flow, 0))
    }

    visit(root)
    while let (flow, next) = path.last {
      let blueprint = flow.blueprint
      guard next < blueprint.nested.count else {
        open.remove(ObjectIdentifier(flow))
        path.removeLast()
        continue
      }
      path[path.count - 1].next += 1
      let inner = blueprint.nested[next]
      if open.contains(ObjectIdentifier(inner)) {
        circular = inner
        break
      }
      if blueprints[ObjectIdentifier(inner)] == nil { visit(inner) }
    }
    self.blueprints = blueprints
    self.circular = circular
  }

  func blueprint(of flow: Flow) -> Blueprint {
    blueprints[ObjectIdentifier(flow)] ?? flow.blueprint
  }
}

extension Flow {
  /// The snapshot for a run that starts now; nil when the flow has no nested flows.
  func currentSnapshot() -> FlowSnapshot? {
    if blueprint.nested.isEmpty { return nil }
    let changes = Flow.changes.load(ordering: .relaxed)
    if let snapshot, snapshot.changes == changes { return snapshot }
    let made = FlowSnapshot(self, changes: changes)
    snapshot = made
    return made
  }
}
