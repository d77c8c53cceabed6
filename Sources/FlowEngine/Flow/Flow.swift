internal import Synchronization

/// Ops in order, over one data bucket. A flow is an op: it can be started, nested and grouped.
///
/// A flow is a blueprint: start it as often as you like, also at the same time. The builder calls
/// change the flow and return it; a run keeps the blueprint it began with, nested flows included.
public final class Flow: Op {
  var blueprint: Blueprint
  /// What the last run began with; used again as long as no flow has changed.
  var snapshot: FlowSnapshot?
  /// Whether it was ever added to a flow.
  private(set) var isStep = false

  /// Counts the changes of all flows: tells whether a snapshot still holds.
  static let changes = Atomic<UInt64>(0)

  /// A flow without steps.
  ///
  /// - Parameters:
  ///   - name: What lines and errors call it.
  ///   - doc: What it does, for people.
  public init(_ name: ByteString = "Flow", doc: ByteString? = nil) {
    blueprint = Blueprint()
    super.init(
      flowNamed: name, doc: doc, declarations: blueprint.declarations, policy: nil)
  }

  private init(
    copying other: Flow, name: ByteString, declarations: Declarations, policy: OpPolicy?
  ) {
    blueprint = other.blueprint
    super.init(flowNamed: name, doc: other.doc, declarations: declarations, policy: policy)
  }

  /// The number of steps.
  public var count: Int { blueprint.steps.count }

  /// The data that a run begins with, in order.
  public var ownData: [(name: ByteString, value: Value)] { blueprint.data }

  /// A flow of its own with the same steps, data and callbacks.
  public func copy(name: ByteString? = nil) -> Flow {
    Flow(
      copying: self, name: name ?? self.name, declarations: declarations, policy: policy)
  }

  override func copy(name: ByteString, declarations: Declarations, policy: OpPolicy?) -> Op {
    let made = Flow(copying: self, name: name, declarations: declarations, policy: policy)
    // A run reads them from the blueprint.
    return declarations === self.declarations
      ? made : made.change { $0.declarations = declarations }
  }

  func markAsStep() { isStep = true }

  /// Data to begin with; a later value replaces an earlier one under the same key.
  @discardableResult
  public func data(_ name: ByteString, _ value: Value) -> Flow {
    change { $0.setData(name, value) }
  }

  /// Gives one value to begin with; see `data(_:)`.
  @discardableResult
  public func data(_ name: ByteString, _ value: some ValueConvertible) -> Flow {
    data(name, value.flowValue)
  }

  /// Gives data to begin with. A run is started with it, its own data before it under the same key.
  ///
  /// Tables, nested ones too, are copied for each run, so that what a run does to them stays there.
  @discardableResult
  public func data(_ entries: KeyValuePairs<ByteString, any ValueConvertible>) -> Flow {
    change { blueprint in
      for (name, value) in entries { blueprint.setData(name, value.flowValue) }
    }
  }

  /// Adds a callback that is called before the first step; several are called in order.
  ///
  /// In a nested flow it is called with the run that the flow is part of.
  @discardableResult
  public func willStart(_ callback: any RunCallback) -> Flow {
    change { $0.willStart.append(callback) }
  }

  /// Has a closure called before the first op of each run, on the loop's thread. Its error fails the
  /// run.
  @discardableResult
  public func willStart(_ body: @escaping (Run) throws -> Void) -> Flow {
    willStart(ClosureCallback(body))
  }

  /// Adds a callback that is called once the flow has settled; several are called in order.
  @discardableResult
  public func didFinish(_ callback: any RunCallback) -> Flow {
    change { $0.didFinish.append(callback) }
  }

  /// Has a closure called when a run has settled, on the loop's thread, before anybody who waits goes
  /// on.
  @discardableResult
  public func didFinish(_ body: @escaping (Run) throws -> Void) -> Flow {
    didFinish(ClosureCallback(body))
  }

  /// Declares what the flow needs, in place of what it declared before.
  @discardableResult
  public func needs(_ needs: [Declaration]) -> Flow {
    declare(needs: needs, gives: declarations.gives)
  }

  /// Declares what data it needs, by types as scripts write them.
  @discardableResult
  public func needs(_ needs: KeyValuePairs<ByteString, ByteString>) -> Flow {
    self.needs(Op.declarations(needs))
  }

  /// Declares what the flow gives, in place of what it declared before.
  @discardableResult
  public func gives(_ gives: [Declaration]) -> Flow {
    declare(needs: declarations.needs, gives: gives)
  }

  /// Declares what data it gives, by types as scripts write them.
  @discardableResult
  public func gives(_ gives: KeyValuePairs<ByteString, ByteString>) -> Flow {
    self.gives(Op.declarations(gives))
  }

  /// Says under which key a group gives the flow an item, and which key it collects; nil leaves each
  /// as it is.
  @discardableResult
  public func primary(input: ByteString? = nil, output: ByteString? = nil) -> Flow {
    declare(
      needs: declarations.needs, gives: declarations.gives,
      primaryInput: input ?? declarations.givenPrimaryInput,
      primaryOutput: output ?? declarations.givenPrimaryOutput)
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

  // MARK: What it declares

  /// What the flow itself declares that it needs: checked before its first step.
  public var ownNeeds: [Declaration] { declarations.needs }
  /// What the flow itself declares that it gives: checked after its last step.
  public var ownGives: [Declaration] { declarations.gives }

  /// Declared inputs, in the order of their keys: its own or, without any, those of the op that is its
  /// only step.
  public override var needs: [Declaration] {
    declarer { !$0.needs.isEmpty }?.declarations.needs ?? []
  }

  /// Declared outputs, in the same way.
  public override var gives: [Declaration] {
    declarer { !$0.gives.isEmpty }?.declarations.gives ?? []
  }

  /// The key under which a group gives it an item: its own or, when it declares no needs, that of the op
  /// that is its only step.
  public override var primaryInput: ByteString? {
    declarer { !$0.needs.isEmpty || $0.primaryInput != nil }?.declarations.primaryInput
  }

  /// The key whose value a group collects, in the same way.
  public override var primaryOutput: ByteString? {
    declarer { !$0.gives.isEmpty || $0.primaryOutput != nil }?.declarations.primaryOutput
  }

  /// The outermost one that declares something, of this flow, the op that is its only step, the only
  /// step of that, and so on; nil when none does.
  private func declarer(_ declares: (Declarations) -> Bool) -> Op? {
    // A loop, as flows can be nested in any depth; and one may contain itself.
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
}
