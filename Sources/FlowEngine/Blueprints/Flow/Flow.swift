internal import Synchronization

/// Ops in order, over one data bucket. A flow is an op: it can be started, nested and grouped.
///
/// A flow is a blueprint: it can be started any number of times, also concurrently. The builder's
/// functions change the flow and return it; a run keeps the blueprint that it started with, nested
/// flows included.
///
/// ```swift
/// let flow = Flow("signup")
///   .data("email", "ada@example.com")
///   .add(LoginOp())
///   .addParallel([MailOp(), AuditOp()])
///   .addFinally(CloseOp())
/// let run = flow.start(on: loop)
/// ```
public class Flow: Op {
  var blueprint: Blueprint
  /// The snapshot of the latest run; used again as long as no flow has changed.
  var snapshot: FlowSnapshot?
  /// Whether it was ever added to a flow.
  private(set) var isStep = false

  /// Counts the changes of all flows: shows whether a snapshot is still valid.
  static let changes = Atomic<UInt64>(0)

  /// A flow without steps.
  ///
  /// - Parameters:
  ///   - name: The name in lines and errors.
  ///   - doc: The purpose of the flow, for people.
  public init(_ name: some FlowText = "Flow" as ByteString, doc: (any FlowText)? = nil) {
    blueprint = Blueprint()
    super.init(
      flowNamed: name.byteString, doc: doc?.byteString, declarations: blueprint.declarations,
      policy: nil)
  }

  init(
    copying other: Flow, name: ByteString, declarations: Declarations, policy: OpPolicy?
  ) {
    blueprint = other.blueprint
    super.init(flowNamed: name, doc: other.doc, declarations: declarations, policy: policy)
  }

  /// The number of steps.
  package var count: Int { blueprint.steps.count }

  /// The initial data of a run, in order.
  package var ownData: [(name: ByteString, value: FlowValue)] { blueprint.data }

  /// Makes a separate flow with the same steps, data and callbacks.
  package func copy(name: (any FlowText)? = nil) -> Flow {
    remade(name: name?.byteString ?? self.name, declarations: declarations, policy: policy)
  }

  /// A flow of the same kind with the same content.
  func remade(name: ByteString, declarations: Declarations, policy: OpPolicy?) -> Flow {
    Flow(copying: self, name: name, declarations: declarations, policy: policy)
  }

  override func copy(name: ByteString, declarations: Declarations, policy: OpPolicy?) -> Op {
    let made = remade(name: name, declarations: declarations, policy: policy)
    // A run reads them from the blueprint.
    return declarations === self.declarations
      ? made : made.change { $0.declarations = declarations }
  }

  func markAsStep() { isStep = true }

  /// Adds initial data; a later value replaces an earlier one under the same key.
  @discardableResult
  public func data(_ name: some FlowText, _ value: FlowValue) -> Flow {
    change { $0.setData(name.byteString, value) }
  }

  /// Sets one initial value; see `data(_:)`.
  @discardableResult
  public func data(_ name: some FlowText, _ value: some FlowValueConvertible) -> Flow {
    data(name, value.flowValue)
  }

  /// Adds a callback that is called before the first step; several are called in order.
  ///
  /// In a nested flow it is called with the run of the enclosing flow.
  @discardableResult
  package func willStart(_ callback: any RunCallback) -> Flow {
    change { $0.willStart.append(callback) }
  }

  /// Adds a closure that is called before the first op of each run, on the loop's thread. Its error
  /// fails the run.
  @discardableResult
  public func willStart(_ body: @escaping (Run) throws -> Void) -> Flow {
    willStart(ClosureCallback(body))
  }

  /// Adds a callback that is called after the flow has settled; several are called in order.
  @discardableResult
  package func didFinish(_ callback: any RunCallback) -> Flow {
    change { $0.didFinish.append(callback) }
  }

  /// Adds a closure that is called when a run has settled, on the loop's thread, before waiting
  /// code continues.
  @discardableResult
  public func didFinish(_ body: @escaping (Run) throws -> Void) -> Flow {
    didFinish(ClosureCallback(body))
  }

  /// Declares the flow's needs, which replace earlier ones.
  @discardableResult
  package func needs(_ needs: [Declaration]) -> Flow {
    declare(needs: needs, gives: declarations.gives)
  }

  /// Declares the flow's needs, with types as scripts write them.
  @discardableResult
  public func needs(
    _ needs: KeyValuePairs<String, String>, file: StaticString = #fileID,
    line: UInt = #line
  ) -> Flow {
    self.needs(Op.declarations(needs, file, line))
  }

  /// Declares the flow's gives, which replace earlier ones.
  @discardableResult
  package func gives(_ gives: [Declaration]) -> Flow {
    declare(needs: declarations.needs, gives: gives)
  }

  /// Declares the flow's gives, with types as scripts write them.
  @discardableResult
  public func gives(
    _ gives: KeyValuePairs<String, String>, file: StaticString = #fileID,
    line: UInt = #line
  ) -> Flow {
    self.gives(Op.declarations(gives, file, line))
  }

  /// Sets the key under which a group passes an item to the flow, and the key that the group
  /// collects; nil leaves each unchanged.
  @discardableResult
  public func primary(input: (any FlowText)? = nil, output: (any FlowText)? = nil) -> Flow {
    declare(
      needs: declarations.needs, gives: declarations.gives,
      primaryInput: input?.byteString ?? declarations.givenPrimaryInput,
      primaryOutput: output?.byteString ?? declarations.givenPrimaryOutput)
  }

  private func declare(needs: [Declaration], gives: [Declaration]) -> Flow {
    declare(
      needs: needs, gives: gives, primaryInput: declarations.givenPrimaryInput,
      primaryOutput: declarations.givenPrimaryOutput)
  }

  private func declare(
    needs: [Declaration], gives: [Declaration], primaryInput: ByteString?,
    primaryOutput: ByteString?
  ) -> Flow {
    change { blueprint in
      blueprint.declarations = Declarations(
        needs: needs, gives: gives, primaryInput: primaryInput, primaryOutput: primaryOutput)
      declarations = blueprint.declarations
    }
  }

  // MARK: Steps

  /// Adds a step: an op, a flow, a typed op, a machine or a template.
  ///
  /// ```swift
  /// let report = Flow("report")
  ///   .add(makeUploadFlow().with(timeout: .seconds(60)))
  ///   .add(Op("SayOp") { $0.log("uploaded") })
  /// ```
  ///
  /// - Parameter op: The op, with the policy that it has at this place.
  /// - Returns: The flow.
  @discardableResult
  public func add(_ op: some OpConvertible) -> Flow {
    let op = op.makeOp()
    return add(op, policy: op.policy)
  }

  /// Adds a step with a policy of this place.
  @discardableResult
  package func add(_ op: Op, policy: OpPolicy?) -> Flow {
    change { $0.append(Step(op, policy: policy)) }
  }

  /// Adds a step that runs `op` once for each item of a list.
  ///
  /// ```swift
  /// flow.addGrouped(op, GroupDispatcher(input: "images", output: "urls", maxConcurrent: 4))
  /// ```
  @discardableResult
  public func addGrouped(_ op: some OpConvertible, _ dispatcher: GroupDispatcher) -> Flow {
    let op = op.makeOp()
    return change { $0.append(Step(.group(dispatcher), op, policy: op.policy)) }
  }

  // MARK: Declarations

  /// The needs that the flow itself declares: checked before its first step.
  package var ownNeeds: [Declaration] { declarations.needs }
  /// The gives that the flow itself declares: checked after its last step.
  package var ownGives: [Declaration] { declarations.gives }

  /// Declared inputs, in the order of their keys: the flow's own or, if it has none, those of the
  /// op that is its only step.
  package override var needs: [Declaration] {
    declarer { !$0.needs.isEmpty }?.declarations.needs ?? []
  }

  /// Declared outputs, in the same way.
  package override var gives: [Declaration] {
    declarer { !$0.gives.isEmpty }?.declarations.gives ?? []
  }

  /// The key under which a group passes it an item: its own or, when it declares no needs, the one of the op that
  /// is its only step.
  package override var primaryInput: ByteString? {
    declarer { !$0.needs.isEmpty || $0.primaryInput != nil }?.declarations.primaryInput
  }

  /// The key whose value a group collects, in the same way.
  package override var primaryOutput: ByteString? {
    declarer { !$0.gives.isEmpty || $0.primaryOutput != nil }?.declarations.primaryOutput
  }

  /// The outermost op that declares something: this flow, else the op that is its only step, else
  /// the only step of that, and so on; nil when none does.
  private func declarer(_ declares: (Declarations) -> Bool) -> Op? {
    // A loop, because flows can be nested to any depth. A flow may also contain itself.
    var seen: Set<ObjectIdentifier> = []
    var op: Op = self
    while !declares(op.declarations) {
      guard let flow = op as? Flow, let only = flow.blueprint.onlyOp,
        seen.insert(ObjectIdentifier(flow)).inserted
      else { return nil }
      op = only
    }
    return op
  }

  @inline(__always)
  @discardableResult
  func change(_ body: (Blueprint) -> Void) -> Flow {
    Self.changes.add(1, ordering: .relaxed)
    if snapshot != nil { snapshot = nil }
    if !isKnownUniquelyReferenced(&blueprint) { blueprint = Blueprint(copying: blueprint) }
    body(blueprint)
    return self
  }

  /// Counts what its steps take in an account, as long as the flow or a run has them.
  package func count(in memory: MemoryAccount) {
    memory.add(blueprint, bytes: blueprint.byteCount)
  }

  override package var codeParts: [CodePart] { blueprintParts() }

  override package var settings: [CodePart] { ownSettings + blueprint.settings }

  override var parts: [Op] {
    (blueprint.steps + blueprint.finally).filter(\.isOfOp).map(\.op)
  }
}

/// The blueprints of a flow and of all nested flows at the start of a run.
final class FlowSnapshot {
  private let blueprints: [ObjectIdentifier: Blueprint]
  let changes: UInt64
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

/// A function to call when a flow starts or has finished. Called on the loop's thread.
package protocol RunCallback: CodeHolder {
  /// Does its work. `.suspended` promises a later `completion.finish()`.
  func call(_ run: Run, completion: CallbackCompletion) -> CallState
  /// Stops a suspended callback because of `error`; the callback must finish sooner or later.
  ///
  /// A callback after the end of a flow is stopped only when the grace is over: `completion.isCut`
  /// is then true, and it must finish at once.
  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError)
  /// Where its code begins, such as `deploy.lua:12`; nil when that isn't known.
  var place: ByteString? { get }
}

extension RunCallback {
  /// nil: the place isn't known.
  package var place: ByteString? { nil }

  /// Stops waiting for the callback.
  package func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
    completion.finish(error)
  }
}

/// A synchronous Swift closure as a callback.
final class ClosureCallback: RunCallback {
  private let body: (Run) throws -> Void

  init(_ body: @escaping (Run) throws -> Void) {
    self.body = body
  }

  func call(_ run: Run, completion: CallbackCompletion) -> CallState {
    do {
      try body(run)
    } catch {
      completion.finish(.from(error))
    }
    return .finished
  }
}
