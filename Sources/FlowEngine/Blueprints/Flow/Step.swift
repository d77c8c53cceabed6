/// One place of a blueprint. All steps are in one list: those of branches and parallel members
/// follow the step that leads to them, so that a position identifies each op of a flow.
struct Step {
  enum Kind {
    /// An op that isn't a flow.
    case op
    case flow
    /// The op runs once for each item of a list.
    case group(GroupDispatcher)
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
  /// Whether it is an op without a policy: saves the hot path a check of `kind`.
  let isPlain: Bool

  init(_ kind: Kind, _ op: Op, policy: OpPolicy? = nil) {
    self.kind = kind
    self.op = op
    self.policy = policy
    if case .op = kind { isPlain = policy == nil } else { isPlain = false }
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

  static func op(_ name: ByteString) -> Op { Op(nameBytes: name, body: NamedPlace()) }

  /// The bytes of such an op, roughly.
  static var byteCount: Int { 512 }
}
