/// A named, reusable operation: a body, and the data that it declares.
///
/// Confined to one thread, like the loop that runs it.
///
/// ```swift
/// let op = Op("GreetOp", needs: ["name": "string"], gives: ["text": "string"]) { context in
///   let name = try context.value("name", as: String.self)
///   context.set("text", "hello, \(name)")
/// }
/// let run = op.start(on: loop, data: ["name": "Ada"])
/// ```
public class Op {
  /// The name in lines and errors.
  public let name: ByteString
  /// The purpose of the op, for people.
  package let doc: ByteString?
  /// nil for a flow, which the engine executes itself.
  package let body: (any OpBody)?
  /// Saves the hot path a dynamic cast.
  let isFlow: Bool
  /// The body's `mayBeBusy`.
  let mayBeBusy: Bool
  /// Retries, timeout, grace and undo; nil when it has none.
  package let policy: OpPolicy?
  /// The code that it was made by, where a class of the host has made it from arguments.
  package var madeBy: (any CodeHolder)?
  // Copies from `declarations`, to save the hot path a reference.
  private(set) var hasNeeds: Bool
  private(set) var hasGives: Bool
  var declarations: Declarations {
    didSet {
      hasNeeds = declarations.hasNeeds
      hasGives = declarations.hasGives
    }
  }

  /// Makes an op with the body `body`, and with types that were parsed before.
  ///
  /// - Parameters:
  ///   - name: The name in lines and errors.
  ///   - doc: The purpose of the op, for people.
  ///   - needs: Declared inputs, checked before the body starts.
  ///   - gives: Declared outputs, checked when the body has succeeded.
  ///   - primaryInput: The key under which a group passes an item; by default the only need.
  ///   - primaryOutput: The key that a group collects; by default the only key of `gives`.
  ///   - policy: Its retries, times, undo and limits; nil for none.
  ///   - body: The op's work.
  package init(
    name: some FlowText, doc: (any FlowText)? = nil, needs: [Declaration] = [],
    gives: [Declaration] = [], primaryInput: (any FlowText)? = nil,
    primaryOutput: (any FlowText)? = nil, policy: OpPolicy? = nil, body: any OpBody
  ) {
    self.name = name.byteString
    self.doc = doc?.byteString
    self.body = body
    isFlow = false
    mayBeBusy = body.mayBeBusy
    self.policy = policy
    declarations = Declarations(
      needs: needs, gives: gives, primaryInput: primaryInput?.byteString,
      primaryOutput: primaryOutput?.byteString)
    hasNeeds = declarations.hasNeeds
    hasGives = declarations.hasGives
  }

  /// Makes an op from a Swift closure; an error it throws fails the op. `with` gives it retries, a timeout, an undo.
  ///
  /// `needs` and `gives` map keys to types; a malformed type ends the process with a sentence.
  public convenience init(
    _ name: some FlowText, doc: (any FlowText)? = nil, needs: KeyValuePairs<String, String> = [:],
    gives: KeyValuePairs<String, String> = [:], primaryInput: (any FlowText)? = nil,
    primaryOutput: (any FlowText)? = nil, file: StaticString = #fileID, line: UInt = #line,
    body: @escaping (OpContext) throws -> Void
  ) {
    self.init(
      name: name, doc: doc, needs: Self.declarations(needs, file, line),
      gives: Self.declarations(gives, file, line), primaryInput: primaryInput,
      primaryOutput: primaryOutput, body: ClosureBody(body))
  }

  /// Makes an op that shares all other properties with another one.
  init(
    copying other: Op, name: ByteString, body: any OpBody, declarations: Declarations,
    policy: OpPolicy?
  ) {
    self.name = name
    doc = other.doc
    self.body = body
    isFlow = false
    mayBeBusy = body.mayBeBusy
    self.policy = policy
    self.declarations = declarations
    hasNeeds = declarations.hasNeeds
    hasGives = declarations.hasGives
  }

  init(
    flowNamed name: ByteString, doc: ByteString?, declarations: Declarations, policy: OpPolicy?
  ) {
    self.name = name
    self.doc = doc
    body = nil
    isFlow = true
    mayBeBusy = false
    self.policy = policy
    self.declarations = declarations
    hasNeeds = declarations.hasNeeds
    hasGives = declarations.hasGives
  }

  /// The keys that it needs, with their types as they were declared: those that are checked before it is executed. A flow
  /// that declares none has those of the op that is its only step.
  ///
  /// ```swift
  /// for (key, type) in op.declaredNeeds { print("\(key): \(type)") }  // image: string
  /// ```
  public var declaredNeeds: [ByteString: ByteString] { Self.types(of: needs) }
  /// The keys that it gives, with their types as they were declared; see `declaredNeeds`.
  public var declaredGives: [ByteString: ByteString] { Self.types(of: gives) }

  private static func types(of declarations: [Declaration]) -> [ByteString: ByteString] {
    Dictionary(declarations.map { ($0.name, $0.type.name) }, uniquingKeysWith: { $1 })
  }

  /// Declared inputs, in the order of their keys.
  package var needs: [Declaration] { declarations.needs }
  /// Declared outputs, in the order of their keys.
  package var gives: [Declaration] { declarations.gives }
  /// The key under which a group passes it an item; nil when that isn't known.
  package var primaryInput: ByteString? { declarations.primaryInput }
  /// The key whose value a group collects; nil when that isn't known.
  package var primaryOutput: ByteString? { declarations.primaryOutput }
  /// How often and when it is retried; nil for never.
  package var retry: RetryPolicy? { policy?.retry }
  /// The time that an attempt may take; nil for no limit.
  package var timeout: Duration? { policy?.timeout }
  /// The time that all its cleanups have together after a stop, which may be very long; nil for
  /// the loop's `cleanupGrace`.
  package var grace: Duration? { policy?.grace }
  /// Whether a kept run executes it again when an earlier process may have executed it.
  package var effect: OpEffect { policy?.effect ?? .repeat }
  /// Which of its results kept runs may take from any other run of their store; nil for none, and for an op with an
  /// undo, which could undo what another run relies on.
  package var cache: CachePolicy? { policy?.undo == nil ? policy?.cache : nil }
  /// The limits that it holds while it executes: it begins when all of these let it.
  ///
  /// The time that it waits for them counts as queued, and not towards its timeout. It gives them back while it waits for
  /// its next attempt. Ops that it executes and starts don't take them again.
  package var limits: [Limit] { policy?.limits ?? [] }
  /// Undoes the op after it has succeeded, when its flow fails or is stopped; nil when it has no undo. See `with`.
  package var undo: (any OpBody)? { policy?.undo }

  /// The op with an undo that may wait, and with other policies.
  package func with(
    name: (any FlowText)? = nil, retry: RetryPolicy? = nil, timeout: Duration? = nil,
    grace: Duration? = nil, effect: OpEffect? = nil, cache: CachePolicy? = nil,
    undoBody: (any OpBody)?, limits: [Limit]? = nil, primaryInput: (any FlowText)? = nil,
    primaryOutput: (any FlowText)? = nil, file: StaticString = #fileID, line: UInt = #line
  ) -> Op {
    let declarations =
      primaryInput == nil && primaryOutput == nil
      ? self.declarations
      : Declarations(
        needs: self.declarations.needs, gives: self.declarations.gives,
        primaryInput: primaryInput?.byteString ?? self.declarations.givenPrimaryInput,
        primaryOutput: primaryOutput?.byteString ?? self.declarations.givenPrimaryOutput)
    let policy = OpPolicy.make(
      self.policy, retry: retry, timeout: timeout, grace: grace, effect: effect, cache: cache,
      undo: undoBody, limits: limits, file: file, line: line)
    let made = copy(name: name?.byteString ?? self.name, declarations: declarations, policy: policy)
    made.madeBy = madeBy
    return made
  }

  func copy(name: ByteString, declarations: Declarations, policy: OpPolicy?) -> Op {
    guard let body else { misuse("an op without a body can't be copied") }
    return Op(
      copying: self, name: name, body: body, declarations: declarations, policy: policy)
  }

  /// The ops directly within this one: steps, or a decorator's inner op.
  var parts: [Op] { body?.inner.map { [$0] } ?? [] }

  /// The parts of its code, unless its body knows the form of all of it.
  package var codeParts: [CodePart] { body?.inner.map { [.code($0)] } ?? [] }

  /// The parts that decide, besides code and declarations, how the op behaves within the code of another one: its
  /// policies, and the settings of a flow or a machine. Empty for most.
  package var settings: [CodePart] { ownSettings }

  /// The names of the steps of a machine; empty for any other op.
  var stepNames: [ByteString] { [] }

  /// The declared inputs with the keys of `loop`, looked up once.
  package func needs(on loop: FlowEventLoop) -> [(key: DataKey, type: FlowValueType)] {
    declarations.resolved(for: loop.keys).needs
  }

  /// The declared outputs with the keys of `loop`, looked up once.
  package func gives(on loop: FlowEventLoop) -> [(key: DataKey, type: FlowValueType)] {
    declarations.resolved(for: loop.keys).gives
  }

  static func declarations(
    _ pairs: KeyValuePairs<String, String>, _ file: StaticString = #fileID,
    _ line: UInt = #line
  ) -> [Declaration] {
    pairs.map { name, text in
      do {
        return Declaration(name, try FlowValueType.parse(ByteString(text)))
      } catch {
        misuse("'\(name)' was declared with a wrong type: \(error)", file: file, line: line)
      }
    }
  }
}

extension Op {
  /// The op with another body: an op class binds arguments with it. Name and declarations are
  /// shared. For a flow, which has no body, the result is an op that runs `body` under the flow's
  /// name.
  ///
  /// - Parameters:
  ///   - body: The body.
  ///   - undo: Another undo; nil keeps the present one.
  /// - Returns: The op.
  package func withBody(_ body: any OpBody, undo: (any OpBody)? = nil) -> Op {
    Op(
      copying: self, name: name, body: body, declarations: declarations,
      policy: undo == nil ? policy : .make(policy, undo: undo))
  }
}

extension Flow {
  /// Whether another flow is a step of this one, at any depth.
  package func contains(_ other: Flow) -> Bool {
    // A flow that was never added to another is no step of this one: building from the inside out
    // is therefore fast.
    if !other.isStep { return false }
    var seen: Set<ObjectIdentifier> = [ObjectIdentifier(self)]
    var open = [self]
    while let flow = open.popLast() {
      for inner in flow.blueprint.nested {
        if inner === other { return true }
        if seen.insert(ObjectIdentifier(inner)).inserted { open.append(inner) }
      }
    }
    return false
  }
}

extension OpConvertible {
  /// The op with another name, other policies or other primary keys; nil leaves each unchanged.
  ///
  /// For a flow the result is a separate flow, like a copy.
  ///
  /// `undo` undoes the op after it has succeeded. When an attempt at a flow ends with an error, the engine
  /// executes the undos of all that had succeeded in it. That is before the final steps, in the reverse order of the
  /// ends: of ops, of items of groups, and of the ops of nested flows, machines and decorators. A context with the name,
  /// index and attempt of the op reads the flow's data, or those of the item. No stop reaches them: after a stop all undos
  /// and final steps of a flow together have its `grace`. The error of an undo is reported, and the other undos are
  /// executed nevertheless.
  public func with(
    name: (any FlowText)? = nil, retry: RetryPolicy? = nil, timeout: Duration? = nil,
    grace: Duration? = nil, effect: OpEffect? = nil, cache: CachePolicy? = nil,
    undo: ((OpContext) throws -> Void)? = nil, limits: [Limit]? = nil,
    primaryInput: (any FlowText)? = nil, primaryOutput: (any FlowText)? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) -> Op {
    makeOp().with(
      name: name, retry: retry, timeout: timeout, grace: grace, effect: effect, cache: cache,
      undoBody: undo.map { ClosureBody($0) }, limits: limits, primaryInput: primaryInput,
      primaryOutput: primaryOutput, file: file, line: line)
  }
}
