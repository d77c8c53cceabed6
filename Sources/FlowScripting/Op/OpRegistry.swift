public import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The ops written in Swift, by name: the contents of `flow.ops`.
final class OpRegistry: HostService {
  private var ops: [ByteString: Op] = [:]
  /// The advice what to use instead of deprecated ones.
  private(set) var advice: [ByteString: ByteString] = [:]
  /// Adds the ops of flowlua; called when an op is first added or looked up.
  private var addBuiltIns: (() -> Void)?
  /// The names in order; empty until they are needed.
  private var sorted: [ByteString] = []
  /// The function that `pairs(flow.ops)` calls; made on first use.
  var iterator: LuaReference?

  init(addBuiltIns: @escaping () -> Void) { self.addBuiltIns = addBuiltIns }

  subscript(name: ByteString) -> Op? {
    complete()
    return ops[name]
  }

  // Most scripts use none of them.
  private func complete() {
    guard let addBuiltIns else { return }
    self.addBuiltIns = nil
    addBuiltIns()
  }

  func add(
    _ op: Op, replacing: Bool, deprecated: String? = nil, file: StaticString = #fileID,
    line: UInt = #line
  ) {
    complete()
    if ops.updateValue(op, forKey: op.name) != nil, !replacing {
      misuse(
        "an op named '\(op.name)' is registered already: each has a name of its own",
        file: file, line: line)
    }
    advice[op.name] = deprecated.map { ByteString($0) }
    sorted = []
  }

  /// Removes an op; returns whether there was one of this name.
  func remove(_ name: ByteString) -> Bool {
    complete()
    sorted = []
    advice[name] = nil
    return ops.removeValue(forKey: name) != nil
  }

  /// Releases all ops: one that a script made keeps the host alive.
  func hostDidClose(_ host: ScriptHost) {
    addBuiltIns = nil
    ops = [:]
    advice = [:]
    sorted = []
    iterator = nil
  }

  /// The names in order.
  var names: [ByteString] {
    complete()
    return ops.keys.sorted()
  }

  /// The name after `name`, or the first one for nil; a name needn't be known.
  func name(after name: ByteString?) -> ByteString? {
    if sorted.isEmpty { sorted = names }
    guard let name else { return sorted.first }
    var low = 0
    var high = sorted.count
    while low < high {
      let middle = (low + high) / 2
      if name < sorted[middle] { high = middle } else { low = middle + 1 }
    }
    return low < sorted.count ? sorted[low] : nil
  }
}

extension ScriptHost {
  /// The ops in `flow.ops`.
  var registry: OpRegistry {
    // A host that is closed keeps no registry, to which they would be added without end.
    service { OpRegistry { [unowned self] in if services != nil { registerBuiltInOps() } } }
  }

  /// Makes an op, or a flow, available to scripts: they find it in `flow.ops` by its name and use
  /// it like one of their own. Registering a name twice ends the process with a message, unless the second
  /// one is `replacing` the first.
  ///
  /// ```swift
  /// host.register(UploadOp())  // flow.ops.UploadOp
  /// ```
  ///
  /// - Parameters:
  ///   - op: An op, or a typed op, that takes no arguments; see `OpClass` for those that do.
  ///   - replacing: Whether it takes the place of an op of the same name, such as one of flowlua's. Ops
  ///     and flows that scripts have already made keep the replaced one.
  ///   - deprecated: The advice what to do instead, such as `use flow.ops.UploadOp`, if the op is deprecated: a
  ///     script that reads it from `flow.ops` is warned, in the way that `deprecations` says. nil for any other op.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  public func register(
    _ op: some OpConvertible, replacing: Bool = false, deprecated: String? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) {
    registry.add(
      op.makeOp(), replacing: replacing, deprecated: deprecated, file: file, line: line)
  }

  /// Makes a class of ops available to scripts: they call `flow.ops.NAME(…)` to make one.
  /// Registering a name twice ends the process with a message, unless the second one is `replacing` the
  /// first.
  ///
  /// - Parameters:
  ///   - opClass: The class.
  ///   - replacing: Whether it takes the place of an op or class of the same name, as of an op.
  ///   - deprecated: The advice what to do instead if the class is deprecated, as of an op.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  public func register(
    _ opClass: OpClass, replacing: Bool = false, deprecated: String? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) {
    registry.add(
      opClass.asOp(), replacing: replacing, deprecated: deprecated, file: file, line: line)
  }

  /// Removes an op from `flow.ops`, also one of flowlua's. Ops and flows that scripts have already made
  /// with it keep it.
  ///
  /// - Parameter name: The name of the op or class.
  /// - Returns: Whether there was one of this name.
  @discardableResult
  public func unregister(_ name: String) -> Bool { registry.remove(ByteString(name)) }

  /// Registers the ops that are part of flowlua, as an embedding program would.
  func registerBuiltInOps() {
    registerDescribed(
      OpClass("PrintOp", doc: PrintOp.docText) { arguments in
        PrintOp(try arguments.text(1))
      })
    registerDescribed(
      OpClass("SleepOp", doc: SleepOp.docText) { arguments in
        SleepOp(try arguments.duration(1))
      })
    if allows(.files) {
      register(ReadFileOp())
      register(WriteFileOp())
    }
    if allows(.requests) { HTTPOpBindings.register(on: self) }
    guard allows(.programs) else { return }
    registerDescribed(
      OpClass("ExecOp", doc: ExecOp.docText) {
        [unowned self] arguments in
        let (request, check) = try ExecBindings(host: self).processRequest(
          arguments, canWrite: false)
        return ExecOp(request, check: check)
      })
  }

  /// Whether the host doesn't allow the op of flowlua with this name.
  func withholdsOp(_ name: ByteString) -> Bool {
    Self.restrictedOps.contains { $0.name == name && !allows($0.effect) }
  }

  /// Registers a class whose ops know the form of their code.
  func registerDescribed(_ opClass: OpClass) {
    opClass.knowsCodeForm = true
    register(opClass)
  }
}

/// `flow.ops` as scripts see it.
enum RegistryBindings {
  /// The value of `flow.ops.NAME`: the op, or nil for an unknown name, as a table has it.
  static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard call.object(1, host.types.registry) != nil else {
      throw Arguments(host, call, method: "__index").wrongSelf("ops")
    }
    guard let name = call.bytes(2) else { return call.answer(.nil) }
    guard let op = host.registry[name] else {
      guard host.withholdsOp(name) else {
        // A name that is only tried, as for an older version, isn't nearly another op's.
        guard let near = NearestName.of(name, in: host.registry.names) else {
          return call.answer(.nil)
        }
        throw host.usage(call, "flow.ops.\(name) isn't there (did you mean '\(near)'?)")
      }
      throw host.usage(
        call, "flow.ops.\(name) isn't there: the host of the script doesn't allow it")
    }
    if let advice = host.registry.advice[name] {
      try host.noteDeprecation(of: "flow.ops.\(name)", advice, since: nil) { call.position }
    }
    return call.answer(try host.value(of: op))
  }

  static var metamethods: LuaFields<BoundMethod> {
    [
      "__newindex": BoundMethod { host, call in
        throw host.usage(
          call, "flow.ops is read-only: the program that runs the script registers its ops")
      },
      "__tostring": BoundMethod { _, call in call.answer(.string("flow.ops")) },
      "__pairs": BoundMethod { host, call in
        let iterator =
          try host.registry.iterator ?? host.vm.makeFunction(host.bind(nextOp))
        host.registry.iterator = iterator
        let ops = try host.vm.value(of: host.registry, host.types.registry)
        return call.answer([.reference(iterator), ops, .nil])
      },
    ]
  }

  /// `next` for `flow.ops`, in the order of the names.
  private static func nextOp(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    let last = call.bytes(2).map { $0 }
    guard let name = host.registry.name(after: last), let op = host.registry[name] else {
      return call.answer(.nil)
    }
    return call.answer([.string(name), try host.value(of: op)])
  }
}

/// A class of ops, written in Swift. A script makes an op by calling it: `PrintOp("hello")`.
///
/// ```swift
/// host.register(
///   OpClass("GreetOp") { arguments in
///     let name = try arguments.string(1)
///     return Op("GreetOp") { context in context.log("Hello, \(name)!") }
///   })
/// ```
public final class OpClass {
  /// Its name in `flow.ops`.
  package let name: ByteString
  /// The value of `op.doc`.
  package let doc: ByteString?
  let make: (OpArguments) throws -> Op
  /// Whether its ops' bodies know the form of their code, arguments included.
  var knowsCodeForm = false

  /// A class of ops.
  ///
  /// - Parameters:
  ///   - name: Its name in `flow.ops` and in messages about its arguments.
  ///   - doc: The value of `op.doc`.
  ///   - make: Makes an op, or a typed op, from the arguments of a call, which are valid until it
  ///     returns. An error that it throws is raised in the script; an error of `OpArguments` is an
  ///     error of use with the script's line.
  public init(
    _ name: some FlowText, doc: (any FlowText)? = nil,
    make: @escaping (OpArguments) throws -> any OpConvertible
  ) {
    self.name = name.byteString
    self.doc = doc?.byteString
    self.make = { try make($0).makeOp() }
  }

  /// The class for scripts: an op whose arguments haven't been given yet.
  func asOp() -> Op { Op(name: name, doc: doc, body: OpClassBody(self)) }
}

extension Op {
  /// The reason why an op can't be used if it is still a class, or wraps one; nil for any other.
  var complaintOfClass: ByteString? {
    var op: Op? = self
    // A loop: a script may wrap an op 100,000 times.
    while let body = op?.body {
      if let body = body as? OpClassBody { return body.complaint }
      op = body.inner
    }
    return nil
  }
}

/// The body of an op class that wasn't called. A script gets an error where it uses the class; a
/// Swift program that starts one gets the error from the run.
final class OpClassBody: OpBody {
  private let opClass: OpClass

  init(_ opClass: OpClass) {
    self.opClass = opClass
  }

  /// The message about using the class itself.
  var complaint: ByteString {
    "op '\(opClass.name)' needs its arguments: call \(opClass.name)(…) first"
  }

  func start(_ context: OpContext) -> CallState {
    context.fail(.usage(complaint))
    return .finished
  }

  /// The op made by a call.
  func op(_ host: ScriptHost, _ call: LuaCall) throws -> Op {
    let arguments = Arguments(host, call, method: opClass.name.description)
    do {
      let op = try opClass.make(OpArguments(arguments))
      if !opClass.knowsCodeForm { op.madeBy = try OpClassCall(host, opClass.name, call) }
      return op
    } catch let error as FlowError {
      throw error.kind == .usage
        ? host.usage(call, error.message) : host.raise(error)
    }
  }
}
