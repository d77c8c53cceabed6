/// Builds a flow out of its steps, written one below the other.
///
/// ```swift
/// let signup = Flow("signup") {
///   LoginOp()
///   Grouped(UploadOp(), over: "images", into: "urls")
///   FlowCase("plan", "pro") { ProOp() }
///   FlowCase(where: { ($0.value("seats") ?? 0) > 5 }) { TeamOp() }
///   Otherwise { FreeOp() }
///   FlowParallel { MailOp(); AuditOp() }
///   Finally { CloseOp() }
/// }
/// ```
///
/// It means the same as the chained calls `add`, `addGrouped`, `case` and so on. Consecutive cases
/// belong together; the steps after them are executed after any of them. `if`, `switch` and `for`
/// are evaluated when the flow is built, not when it runs.
public typealias FlowBuilder = FlowListBuilder<any FlowComponent>

/// Builds the list of a block: the steps of a flow, the ops of a `FlowParallel`, the parts of a machine. `if`, `switch` and
/// `for` are evaluated when it is made.
@resultBuilder
public enum FlowListBuilder<Part> {
  /// One part.
  public static func buildExpression(_ part: Part) -> [Part] { [part] }

  /// Consecutive parts.
  public static func buildBlock(_ parts: [Part]...) -> [Part] { parts.flatMap { $0 } }

  /// An `if` without an `else`.
  public static func buildOptional(_ part: [Part]?) -> [Part] { part ?? [] }

  /// The first branch of an `if`.
  public static func buildEither(first part: [Part]) -> [Part] { part }

  /// The other branch of an `if`.
  public static func buildEither(second part: [Part]) -> [Part] { part }

  /// A `for` that makes parts.
  public static func buildArray(_ parts: [[Part]]) -> [Part] { parts.flatMap { $0 } }
}

extension FlowListBuilder where Part == any FlowComponent {
  /// An op, or a class of ops, is a step.
  public static func buildExpression(_ step: some OpConvertible) -> [any FlowComponent] {
    [OpComponent(op: step.makeOp())]
  }
}

extension FlowListBuilder where Part == Op {
  /// An op, or a class of ops.
  public static func buildExpression(_ op: some OpConvertible) -> [Op] { [op.makeOp()] }
}

/// A part of a flow other than a plain op, for `FlowBuilder`.
///
/// ```swift
/// struct Audited: FlowComponent {
///   let op: Op
///   func add(to flow: Flow) { flow.add(op).add(AuditOp()) }
/// }
/// let signup = Flow("signup") { Audited(op: op) }
/// ```
public protocol FlowComponent {
  /// Adds it to the end of a flow.
  func add(to flow: Flow)
}

extension Flow {
  /// Makes a flow of the steps that a `FlowBuilder` lists. More can be added, as to any flow.
  ///
  /// - Parameters:
  ///   - name: The name in lines and errors.
  ///   - doc: The purpose of the flow, for people.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  ///   - steps: The steps.
  public convenience init(
    _ name: some FlowText = "Flow" as ByteString, doc: (any FlowText)? = nil,
    file: StaticString = #fileID, line: UInt = #line, @FlowBuilder steps: () -> [any FlowComponent]
  ) {
    self.init(name, doc: doc)
    for component in steps() {
      let isJoined =
        switch component {
        // A case after `Otherwise` starts a new block.
        case is FlowCase: problemOfCase() != nil
        case is Otherwise, is Finally: false
        default: problemOfCombine() == nil
        }
      if isJoined { combine(file: file, line: line) }
      component.add(to: self)
    }
  }

  /// Adds the steps in the braces of a branch.
  fileprivate func addBranch(_ components: [any FlowComponent]) {
    for component in components {
      if component is FlowCase || component is Otherwise {
        misuse("flow '\(name)': cases don't nest: put a flow inside a case instead")
      }
      component.add(to: self)
    }
  }
}

/// One op as a step.
private struct OpComponent: FlowComponent {
  let op: Op

  func add(to flow: Flow) { flow.add(op) }
}

/// A step that executes an op once for each item of a list; see `Flow.addGrouped`.
///
/// ```swift
/// let flow = Flow("publish") {
///   Grouped(UploadOp(), over: "images", into: "urls", maxConcurrent: 4)
/// }
/// ```
public struct Grouped: FlowComponent {
  private let op: Op
  private let dispatcher: GroupDispatcher

  /// A group of an op's executions, with all settings of a dispatcher.
  public init(_ op: some OpConvertible, _ dispatcher: GroupDispatcher) {
    self.op = op.makeOp()
    self.dispatcher = dispatcher
  }

  /// - Parameters:
  ///   - op: The op to execute for each item.
  ///   - input: The key of the list.
  ///   - output: The key of the results, in the order of the list; nil collects nothing.
  ///   - maxConcurrent: How many items execute at the same time.
  public init(
    _ op: some OpConvertible, over input: some FlowText, into output: (any FlowText)? = nil,
    maxConcurrent: Int = 3
  ) {
    self.init(op, GroupDispatcher(input: input, output: output, maxConcurrent: maxConcurrent))
  }

  public func add(to flow: Flow) { flow.addGrouped(op, dispatcher) }
}

/// A branch, taken when its condition holds and no earlier case is taken; see `Flow.case`.
///
/// ```swift
/// let signup = Flow("signup") {
///   FlowCase("plan", "pro") { ProOp() }
///   FlowCase(where: { ($0.value("seats") ?? 1) > 1 }) { TeamOp() }
///   Otherwise { FreeOp() }
/// }
/// ```
public struct FlowCase: FlowComponent {
  private enum Condition {
    case equals(ByteString, ByteString)
    case predicate(any CasePredicate)
  }

  private let condition: Condition
  private let steps: [any FlowComponent]

  /// A branch that is taken when `key` holds the string `value`.
  public init(
    _ key: some FlowText, _ value: some FlowText, @FlowBuilder steps: () -> [any FlowComponent]
  ) {
    condition = .equals(key.byteString, value.byteString)
    self.steps = steps()
  }

  /// A branch that is taken when `predicate` returns true for the flow's data.
  public init(
    where predicate: @escaping (DataBucket) throws -> Bool,
    @FlowBuilder steps: () -> [any FlowComponent]
  ) {
    condition = .predicate(ClosurePredicate(predicate))
    self.steps = steps()
  }

  public func add(to flow: Flow) {
    switch condition {
    case .equals(let key, let value): flow.case(key, value)
    case .predicate(let predicate): flow.case(where: predicate)
    }
    flow.addBranch(steps)
  }
}

/// The branch that is taken when no earlier case is; see `Flow.otherwise`.
///
/// ```swift
/// let welcome = Flow("welcome") {
///   FlowCase("plan", "pro") { ProOp() }
///   Otherwise { FreeOp() }
/// }
/// ```
public struct Otherwise: FlowComponent {
  private let steps: [any FlowComponent]

  /// A branch of the steps to execute when no case matches.
  public init(@FlowBuilder steps: () -> [any FlowComponent]) {
    self.steps = steps()
  }

  public func add(to flow: Flow) {
    flow.otherwise()
    flow.addBranch(steps)
  }
}

/// A step that executes different ops at the same time; see `Flow.addParallel`.
///
/// ```swift
/// let flow = Flow("notify") {
///   FlowParallel { MailOp(); AuditOp() }
/// }
/// ```
public struct FlowParallel: FlowComponent {
  private let ops: [Op]

  /// The ops that are executed at the same time.
  public init(@FlowListBuilder<Op> ops: () -> [Op]) {
    self.ops = ops()
  }

  public func add(to flow: Flow) { flow.addParallel(ops) }
}

/// Final steps, which run whatever the outcome; see `Flow.addFinally`.
///
/// ```swift
/// let flow = Flow("publish") {
///   UploadOp()
///   Finally { CloseOp() }
/// }
/// ```
public struct Finally: FlowComponent {
  private let ops: [Op]

  /// Final steps of these ops, which run whatever the outcome.
  public init(@FlowListBuilder<Op> ops: () -> [Op]) {
    self.ops = ops()
  }

  public func add(to flow: Flow) {
    for op in ops { flow.addFinally(op) }
  }
}
