/// One place of a blueprint. Steps stand in one list: those of branches and parallel members behind the
/// step that leads to them, so that a position names each op of a flow.
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
  /// The op; of `parallel` and `cases` one that only has a name.
  let op: Op
  /// The policy at this place: the op's own, unless another was given here.
  let policy: OpPolicy?
  /// Spares the hot path a look at `kind`: an op without a policy.
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

/// When a branch is taken.
enum CaseCondition {
  /// The key holds this very string.
  case equals(key: ByteString, value: ByteString)
  case predicate(any CasePredicate)
  case otherwise

  /// What events and errors call the branch: `plan: pro`, `case 2`, `otherwise`.
  func label(number: Int) -> ByteString {
    switch self {
    case .equals(let key, let value): "\(key): \(value)"
    case .predicate: "case \(number)"
    case .otherwise: "otherwise"
    }
  }
}

/// The branches from the first case up to `combine`, or to the end of the flow.
struct CaseBlock {
  struct Branch {
    let condition: CaseCondition
    /// The branch's first step; it ends where the next branch begins, or with the block.
    let first: Int
  }

  var branches: ContiguousArray<Branch> = []
  /// Behind the last step of the last branch; nil as long as the block is open.
  var end: Int?

  var hasOtherwise: Bool {
    if case .otherwise? = branches.last?.condition { return true }
    return false
  }

  /// Where the steps of a branch end, in a blueprint of `count` steps.
  func end(of branch: Int, count: Int) -> Int {
    branch + 1 < branches.count ? branches[branch + 1].first : end ?? count
  }
}

/// Decides whether a branch is taken. Called on the loop's thread; it may wait.
public protocol CasePredicate: AnyObject {
  /// Says by `completion.answer(_:)` whether the branch is taken, at once or later; `.suspended`
  /// promises that.
  func matches(
    _ data: DataBucket, in run: Run, completion: CallbackCompletion
  ) -> OpProgress
  /// Asks a suspended predicate to stop because of `error`; it must finish sooner or later.
  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError)
}

extension CasePredicate {
  /// Doesn't wait for it any longer.
  public func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
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
  ) -> OpProgress {
    do {
      completion.answer(try body(data))
    } catch {
      completion.finish(.from(error))
    }
    return .finished
  }
}

/// What control steps have in place of an op: a name for lines and errors.
final class NamedPlace: OpBody {
  func start(_ context: OpContext) -> OpProgress { .finished }

  static func op(_ name: ByteString) -> Op { Op(name: name, body: NamedPlace()) }
}
