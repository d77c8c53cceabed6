// The undos of ops that another op has executed over its own data, as decorators do. A kept run takes over the end of
// such an op as a whole, so that the undos within it are kept with that end.
extension Execution {
  /// The undos of what the op of the context has executed over its data.
  var keptUndos: [KeptUndo] {
    guard let undos = context.resources?.undos, !undos.isEmpty else { return [] }
    let known = context.op.executedUndos
    return undos.map { undo in
      var data: [(key: DataKey, value: FlowValue)] = []
      var next: DataBucket? = undo.bucket
      while let own = next, own !== bucket {
        for entry in own.entries where !data.contains(where: { $0.key == entry.key }) {
          data.append((entry.key, own.isSecret(entry.key) ? .secret(entry.value) : entry.value))
        }
        next = own.parent
      }
      return KeptUndo(
        name: undo.op.nameBytes,
        number: known.firstIndex {
          $0.op.nameBytes == undo.op.nameBytes && $0.policy.undo === undo.op.body
        },
        index: undo.index, attempt: undo.attempt, lineage: undo.lineage,
        place: undo.bucket === bucket ? .same : next == nil ? .apart : .within, data: data)
    }
  }

  /// The undos of what an op had executed in an earlier process. One that the script doesn't have any more is left
  /// out.
  func restored(_ undos: [KnownUndo], of op: Op) -> ContiguousArray<UndoableOp> {
    let known = op.executedUndos
    var restored: ContiguousArray<UndoableOp> = []
    for kept in undos {
      let undo = kept.undo
      // The code is the same, unless it has changed and is trusted.
      let sameNumber = undo.number.flatMap { known.indices.contains($0) ? known[$0] : nil }
      guard
        let found = [sameNumber].compactMap({ $0 }).first(where: { $0.op.nameBytes == undo.name })
          ?? known.first(where: { $0.op.nameBytes == undo.name }), let body = found.policy.undo
      else { continue }
      var data = bucket
      if undo.place != .same {
        data = DataBucket(keys: bucket.keys, parent: undo.place == .within ? bucket : nil)
        for (key, value) in undo.data { data.set(key, value) }
      }
      restored.append(
        UndoableOp(
          op: found.op.undone(by: body), policy: found.policy.ofUndo, bucket: data,
          logsSets: undo.place == .same && logsSets, index: undo.index, attempt: undo.attempt,
          scope: context.scope, position: context.position, lineage: undo.lineage,
          place: undo.lineage, isOutside: true, undone: [kept.undone]))
    }
    return restored
  }
}

extension Op {
  /// The ops and flows with an undo that an execution of this one may execute over its data, with their policies, in
  /// an order that the code alone decides.
  fileprivate var executedUndos: [(op: Op, policy: OpPolicy)] {
    var found: [(op: Op, policy: OpPolicy)] = []
    var visited: Set<ObjectIdentifier> = [ObjectIdentifier(self)]
    var ops: [Op] = [self]
    var next = 0
    // Ops may be nested at any depth.
    while next < ops.count {
      for (op, policy) in ops[next].executedParts {
        if let policy, policy.undo != nil { found.append((op, policy)) }
        if visited.insert(ObjectIdentifier(op)).inserted { ops.append(op) }
      }
      next += 1
    }
    return found
  }

  /// The ops directly within this one, except final steps, with the policies of their places.
  private var executedParts: [(op: Op, policy: OpPolicy?)] {
    guard let flow = self as? Flow else { return parts.map { ($0, $0.policy) } }
    return flow.blueprint.steps.filter(\.isOfOp).map { ($0.op, $0.policy) }
  }

  /// The op with its undo as the body.
  func undone(by undo: any OpBody) -> Op {
    Op(
      copying: self, name: nameBytes, body: undo, declarations: Declarations(needs: [], gives: []),
      policy: nil)
  }
}
