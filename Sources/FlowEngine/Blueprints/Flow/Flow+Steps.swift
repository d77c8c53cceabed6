// The builder's functions that add steps.
extension Flow {
  /// Adds a step with the op's own policy.
  ///
  /// - Parameter op: An op or flow.
  /// - Returns: The flow.
  @discardableResult
  public func add(_ op: Op) -> Flow { change { $0.append(Step(op, policy: op.policy)) } }

  /// Adds a step.
  ///
  /// - Parameters:
  ///   - op: An op or flow.
  ///   - retry: How often it is retried at this place; nil leaves it to the op.
  ///   - timeout: The time that an attempt may take at this place; nil leaves it to the op.
  ///   - grace: The time that its cleanups have after a stop at this place; nil leaves it to the op.
  ///   - undo: Undoes it at this place, as `Op.undo`; nil leaves it to the op.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  /// - Returns: The flow.
  @discardableResult
  public func add(
    _ op: Op, retry: RetryPolicy? = nil, timeout: Duration? = nil, grace: Duration? = nil,
    undo: (any OpBody)? = nil, file: StaticString = #fileID, line: UInt = #line
  ) -> Flow {
    let policy = OpPolicy.make(
      op.policy, retry: retry, timeout: timeout, grace: grace, undo: undo, file: file, line: line)
    return change { $0.append(Step(op, policy: policy)) }
  }

  /// Adds a step that runs `op` once for each item of a list.
  @discardableResult
  public func addGrouped(_ op: Op, _ dispatcher: GroupDispatcher) -> Flow {
    change { $0.append(Step(.group(dispatcher), op, policy: op.policy)) }
  }

  /// Adds a step that executes different ops at the same time, over the flow's own data.
  ///
  /// The first failure cancels the others, and the flow fails with it. When two ops set the same
  /// key, the later value wins.
  @discardableResult
  public func addParallel(_ ops: [Op]) -> Flow {
    change { blueprint in
      blueprint.append(Step(.parallel(count: ops.count), NamedPlace.op("Parallel")))
      for op in ops { blueprint.append(Step(op, policy: op.policy)) }
    }
  }

  /// Adds ops that run at the same time; see the function that takes a list.
  @discardableResult
  public func addParallel(_ ops: Op...) -> Flow { addParallel(ops) }

  /// Adds a final step, which is executed at the end of each attempt at the flow, whatever the
  /// outcome. Failures, timeouts and cancels of the flow don't reach it. Its failure fails a flow
  /// that had succeeded. After a stop all final steps together have the flow's `grace`.
  @discardableResult
  public func addFinally(
    _ op: Op, retry: RetryPolicy? = nil, timeout: Duration? = nil, grace: Duration? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) -> Flow {
    change { blueprint in
      let policy = OpPolicy.make(
        op.policy, retry: retry, timeout: timeout, grace: grace, file: file, line: line)
      blueprint.appendFinally(Step(op, policy: policy))
    }
  }

  // MARK: Cases

  /// Starts a branch that is taken when `key` holds the string `value` and no earlier branch is
  /// taken.
  ///
  /// Steps added next belong to the branch, until the next case, `otherwise`, `combine`, or the end
  /// of the flow.
  @discardableResult
  public func `case`(
    _ key: String, _ value: String, file: StaticString = #fileID, line: UInt = #line
  ) -> Flow {
    `case`(ByteString(key), ByteString(value), file: file, line: line)
  }

  /// The same with texts that may have any bytes.
  @discardableResult @_disfavoredOverload
  package func `case`(
    _ key: ByteString, _ value: ByteString, file: StaticString = #fileID, line: UInt = #line
  ) -> Flow {
    branch(.equals(key: key, value: value), file, line)
  }

  /// Starts a branch that is taken when `predicate` matches and no earlier branch is taken.
  @discardableResult
  package func `case`(
    where predicate: any CasePredicate, file: StaticString = #fileID, line: UInt = #line
  ) -> Flow {
    branch(.predicate(predicate), file, line)
  }

  /// Starts a branch that is taken when a predicate of the data returns true; its error fails the
  /// flow.
  @discardableResult
  public func `case`(
    where predicate: @escaping (DataBucket) throws -> Bool, file: StaticString = #fileID,
    line: UInt = #line
  ) -> Flow {
    branch(.predicate(ClosurePredicate(predicate)), file, line)
  }

  /// Starts the branch that is taken when no case matched. Without it the flow then ends early and
  /// successfully.
  @discardableResult
  public func otherwise(file: StaticString = #fileID, line: UInt = #line) -> Flow {
    branch(.otherwise, file, line)
  }

  /// Joins the branches: steps added next are executed after any of them.
  @discardableResult
  public func combine(file: StaticString = #fileID, line: UInt = #line) -> Flow {
    if let problem = problemOfCombine() {
      misuse("flow '\(nameBytes)': \(problem)", file: file, line: line)
    }
    return change { $0.combine() }
  }

  private func branch(_ condition: CaseCondition, _ file: StaticString, _ line: UInt) -> Flow {
    if let problem = problem(of: condition) {
      misuse("flow '\(nameBytes)': \(problem)", file: file, line: line)
    }
    return change { $0.beginBranch(condition) }
  }

  private func problem(of condition: CaseCondition) -> ByteString? {
    if case .otherwise = condition { return problemOfOtherwise() }
    return problemOfCase()
  }

  /// Why `case` isn't allowed now; nil when it is.
  package func problemOfCase() -> ByteString? {
    blueprint.isInCases && blueprint.cases.last?.hasOtherwise == true
      ? "a case can't come after otherwise(); join the branches with combine() first" : nil
  }

  /// Why `otherwise` isn't allowed now; nil when it is.
  package func problemOfOtherwise() -> ByteString? {
    guard blueprint.isInCases else { return "otherwise() without a case before it" }
    return blueprint.cases.last?.hasOtherwise == true
      ? "otherwise() twice for the same cases" : nil
  }

  /// Why `combine` isn't allowed now; nil when it is.
  package func problemOfCombine() -> ByteString? {
    blueprint.isInCases ? nil : "combine() without a case to join"
  }
}
