// The builder's functions that add more than one step.
extension Flow {
  /// Adds a step that executes different ops at the same time, over the flow's own data.
  ///
  /// The first failure cancels the others, and the flow fails with it. When two ops set the same
  /// key, the later value wins.
  @discardableResult
  public func addParallel(_ ops: [any OpConvertible]) -> Flow {
    if let problem = problemOfParallel() { misuse("flow '\(name)': \(problem)") }
    return change { blueprint in
      blueprint.append(Step(.parallel(count: ops.count), NamedPlace.op("Parallel")))
      for op in ops.map({ $0.makeOp() }) { blueprint.append(Step(op, policy: op.policy)) }
    }
  }

  /// Adds ops that run at the same time; see the function that takes a list.
  ///
  /// ```swift
  /// flow.addParallel([MailOp(), AuditOp()])
  /// ```
  @discardableResult
  package func addParallel(_ ops: any OpConvertible...) -> Flow { addParallel(ops) }

  /// Adds a final step, which is executed at the end of each attempt at the flow, whatever the
  /// outcome. Failures, timeouts and cancels of the flow don't reach it. Its failure fails a flow
  /// that had succeeded. After a stop all final steps together have the flow's `grace`.
  ///
  /// ```swift
  /// flow.add(op).addFinally(CloseOp())
  /// ```
  @discardableResult
  public func addFinally(_ op: some OpConvertible) -> Flow {
    let op = op.makeOp()
    return addFinally(op, policy: op.policy)
  }

  /// Adds a final step with a policy of this place.
  @discardableResult
  package func addFinally(_ op: Op, policy: OpPolicy?) -> Flow {
    change { $0.appendFinally(Step(op, policy: policy)) }
  }

  // MARK: Cases

  /// Starts a branch that is taken when `key` holds the string `value` and no earlier branch is
  /// taken.
  ///
  /// Steps added next belong to the branch, until the next case, `otherwise`, `combine`, or the end
  /// of the flow.
  ///
  /// ```swift
  /// flow.case("plan", "pro").add(ProOp())
  ///   .otherwise().add(FreeOp())
  ///   .combine()
  /// ```
  @discardableResult
  public func `case`(
    _ key: some FlowText, _ value: some FlowText, file: StaticString = #fileID,
    line: UInt = #line
  ) -> Flow {
    branch(.equals(key: key.byteString, value: value.byteString), file, line)
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
      misuse("flow '\(name)': \(problem)", file: file, line: line)
    }
    return change { $0.combine() }
  }

  private func branch(_ condition: CaseCondition, _ file: StaticString, _ line: UInt) -> Flow {
    if let problem = problem(of: condition) {
      misuse("flow '\(name)': \(problem)", file: file, line: line)
    }
    return change { $0.beginBranch(condition) }
  }

  private func problem(of condition: CaseCondition) -> ByteString? {
    if case .otherwise = condition { return problemOfOtherwise() }
    return problemOfCase()
  }

  /// Why `addParallel` isn't allowed; nil when it is.
  package func problemOfParallel() -> ByteString? {
    blueprint.graph == nil
      ? nil : "the ops of a graph run side by side anyway: add them one by one"
  }

  private var problemOfGraph: ByteString? {
    blueprint.graph == nil
      ? nil
      : "a graph has no cases: put a flow with cases into it, or give an op a condition with 'when'"
  }

  /// Why `case` isn't allowed now; nil when it is.
  package func problemOfCase() -> ByteString? {
    if let problemOfGraph { return problemOfGraph }
    return blueprint.isInCases && blueprint.cases.last?.hasOtherwise == true
      ? "a case can't come after otherwise(); join the branches with combine() first" : nil
  }

  /// Why `otherwise` isn't allowed now; nil when it is.
  package func problemOfOtherwise() -> ByteString? {
    if let problemOfGraph { return problemOfGraph }
    guard blueprint.isInCases else { return "otherwise() without a case before it" }
    return blueprint.cases.last?.hasOtherwise == true
      ? "otherwise() twice for the same cases" : nil
  }

  /// Why `combine` isn't allowed now; nil when it is.
  package func problemOfCombine() -> ByteString? {
    if let problemOfGraph { return problemOfGraph }
    return blueprint.isInCases ? nil : "combine() without a case to join"
  }
}

/// One place of a blueprint. All steps are in one list: those of branches and parallel members
/// follow the step that leads to them, so that a position identifies each op of a flow.
struct Step {
  enum Kind {
    /// An op that isn't a flow.
    case op
    case flow
    /// The op runs once for each item of a list.
    indirect case group(GroupDispatcher)
    /// The next `count` steps are executed at the same time.
    case parallel(count: Int)
    /// One of the branches of `Blueprint.cases[block]` is executed, or none.
    case cases(block: Int)
  }

  let kind: Kind
  /// The op; for `parallel` and `cases` an op that only has a name.
  let op: Op
  /// The policy at this place: the op's own, unless this place has another.
  let policy: OpPolicy?
  // These save hot paths a look at `kind`, which is large.

  /// Whether it is an op that isn't a flow, or a group.
  let isOp, isGroup: Bool
  /// Whether it is an op without a policy.
  var isPlain: Bool { isOp && policy == nil }

  init(_ kind: Kind, _ op: Op, policy: OpPolicy? = nil) {
    self.kind = kind
    self.op = op
    self.policy = policy
    if case .op = kind { isOp = true } else { isOp = false }
    if case .group = kind { isGroup = true } else { isGroup = false }
  }

  /// A step of one op or flow.
  init(_ op: Op, policy: OpPolicy?) {
    self.init(op.isFlow ? .flow : .op, op, policy: policy)
  }
}

extension Step {
  /// Whether its op is executed, and not just a name.
  var isOfOp: Bool {
    switch kind {
    case .op, .flow, .group: true
    case .parallel, .cases: false
    }
  }

  /// The bytes that it takes, roughly, with what it alone refers to.
  var byteCount: Int {
    let own = MemoryLayout<Step>.stride + (policy == nil || policy === op.policy ? 0 : 256)
    return switch kind {
    case .op, .flow: own
    case .group: own + 384
    case .parallel, .cases: own + NamedPlace.byteCount
    }
  }
}

/// The condition of a branch.
enum CaseCondition {
  /// The key holds exactly this string.
  case equals(key: ByteString, value: ByteString)
  case predicate(any CasePredicate)
  case otherwise

  /// The name of the branch in events and errors: `plan: pro`, `case 2`, `otherwise`.
  func label(number: Int) -> ByteString {
    switch self {
    case .equals(let key, let value): "\(key): \(value)"
    case .predicate: "case \(number)"
    case .otherwise: "otherwise"
    }
  }

  /// The bytes that a branch takes, roughly.
  var byteCount: Int {
    let own = MemoryLayout<CaseBlock.Branch>.stride + 64
    return switch self {
    case .equals(let key, let value): own + key.count + value.count + 64
    case .predicate, .otherwise: own
    }
  }
}

/// The branches from the first case up to `combine`, or to the end of the flow.
struct CaseBlock {
  struct Branch {
    let condition: CaseCondition
    /// The branch's first step; the branch ends at the start of the next branch, or with the block.
    let first: Int
  }

  var branches: ContiguousArray<Branch> = []
  /// The position after the last step of the last branch; nil as long as the block is open.
  var end: Int?

  var hasOtherwise: Bool {
    if case .otherwise? = branches.last?.condition { return true }
    return false
  }

  /// The position after the last step of a branch, in a blueprint of `count` steps.
  func end(of branch: Int, count: Int) -> Int {
    branch + 1 < branches.count ? branches[branch + 1].first : end ?? count
  }
}

/// Decides whether a branch is taken. Called on the loop's thread; it may wait.
package protocol CasePredicate: CodeHolder {
  /// Reports with `completion.answer(_:)` whether the branch is taken, at once or later;
  /// `.suspended` promises a later answer.
  func matches(
    _ data: DataBucket, in run: Run, completion: CallbackCompletion
  ) -> CallState
  /// Stops a suspended predicate because of `error`; the predicate must finish sooner or later.
  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError)
}

extension CasePredicate {
  /// Stops waiting for the predicate.
  package func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
    completion.finish(error)
  }
}

/// A synchronous Swift closure as a predicate.
final class ClosurePredicate: CasePredicate {
  private let body: (DataBucket) throws -> Bool

  init(_ body: @escaping (DataBucket) throws -> Bool) {
    self.body = body
  }

  func matches(
    _ data: DataBucket, in run: Run, completion: CallbackCompletion
  ) -> CallState {
    do {
      completion.answer(try body(data))
    } catch {
      completion.finish(.from(error))
    }
    return .finished
  }
}

/// The body of the op of a control step, which only has a name for lines and errors.
final class NamedPlace: OpBody {
  func start(_ context: OpContext) -> CallState { .finished }

  static func op(_ name: ByteString) -> Op { Op(name: name, body: NamedPlace()) }

  /// The bytes of such an op, roughly.
  static var byteCount: Int { 512 }
}
