@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The options of `start` and `run`.
struct RunOptions {
  /// The fields of an options table that this type reads.
  static let fields: [String] = ["log_limit", "keep"]

  let logLimit: Int?
  /// Whether the run is kept, even if others of the script aren't.
  let keeps: Bool
  /// The rule for a start while another run of the op and the key is there; nil: it starts beside it.
  let overlap: Overlaps.Rule?
  let key: ByteString

  init(_ options: Options) throws {
    overlap = try options.choice("overlap", of: Overlaps.Rule.allCases.map { ($0.rawValue, $0) })
    key = try options.string("key") ?? ""
    if overlap == nil, options.has("key") {
      throw options.arguments.wrong(
        options.index, "field 'key': it has no effect without 'overlap'")
    }
    logLimit = try options.count("log_limit")
    keeps = try options.boolean("keep") ?? false
  }
}

/// `flow.op` and calls of op classes.
struct OpBindings {
  let host: ScriptHost

  func install() throws {
    host.define("op") { host, call in
      let arguments = Arguments(host, call, "op")
      let name = try arguments.name(1)
      let op: Op
      switch call.kind(2) {
      case .function:
        op = Op(name: name, body: ScriptOpBody(host, try arguments.function(2)))
      case .table:
        op = try Self(host: host).makeOp(name, arguments)
      default:
        throw arguments.wrong(2, expected: "function or table")
      }
      host.loop.memory?.add(op, bytes: MemoryAccount.opSize)
      host.noteDeclared(op, call)
      return call.answer(op, host.types.op)
    }
    WrapBindings(host: host).install()
    try host.vm.set(
      try host.vm.value(of: host.registry, host.types.registry), "ops", in: host.module)
  }

  private func makeOp(_ name: ByteString, _ arguments: Arguments) throws -> Op {
    let options = try arguments.options(
      2,
      known: ["doc", "needs", "gives", "primary_input", "primary_output", "run"]
        + PolicyOptions.fields)
    guard let function = try options.function("run") else {
      throw arguments.wrong(2, "field 'run': function expected, got nil")
    }
    let policy = try PolicyOptions(options)
    func declared(_ field: ByteString) throws -> [Declaration] {
      guard let table = try options.table(field) else { return [] }
      return try host.declaration(table) { arguments.wrong(2, "field '\(field)': \($0)") }
    }
    let op = Op(
      name: name, doc: try options.string("doc"), needs: try declared("needs"),
      gives: try declared("gives"), primaryInput: try options.string("primary_input"),
      primaryOutput: try options.string("primary_output"),
      policy: policy.over(nil, undo: policy.undo),
      body: try PolicyBindings(host: host).body(function, policy, options, of: name)
    )
    try PolicyBindings.checkStreams(of: op, options)
    return policy.limiting(policy.keeping(op))
  }

  static var methods: LuaFields<BoundMethod> {
    [
      "with": BoundMethod(PolicyBindings.with),
      "start": BoundMethod { host, call in
        let arguments = Arguments(host, call, method: "start")
        return call.answer(try Self(host: host).start(arguments), host.types.run)
      },
      "run": BoundMethod { host, call in
        let arguments = Arguments(host, call, method: "run")
        return try host.waitAndAnswer(call, try Self(host: host).start(arguments))
      },
    ]
  }

  static var metamethods: LuaFields<BoundMethod> {
    ScriptHost.describingMetamethods + [
      "__call": BoundMethod { host, call in
        guard let op = call.object(1, host.types.op) else {
          throw Arguments(host, call, method: "op").wrongSelf("op")
        }
        return call.answer(try host.value(of: try Self(host: host).bound(op, call)))
      }
    ]
  }

  /// The result of calling an op: the same op with arguments.
  func bound(_ op: Op, _ call: LuaCall) throws -> Op {
    let values = call.count < 2 ? [] : try (2...call.count).map { try call.value($0) }
    let table = values.isEmpty ? nil : try host.vm.makeTable(values: values)
    return try bound(op, call, table, count: values.count)
  }

  private func bound(
    _ op: Op, _ call: LuaCall, _ arguments: LuaReference?, count: Int
  ) throws -> Op {
    if let body = op.body as? OpClassBody { return try body.op(host, call) }
    if let body = op.body as? WrappedOpBody {
      let inner = try bound(body.wrapped, call, arguments, count: count)
      return try body.wrapping(inner, in: op, arguments: arguments, count: count)
    }
    if let body = op.body as? RenamedKeysBody {
      return op.withBody(body.renaming(try bound(body.wrapped, call, arguments, count: count)))
    }
    let undo = (op.undo as? ScriptOpBody)?.binding(arguments, count: count)
    switch op.body {
    case let body as ScriptOpBody:
      return op.withBody(body.binding(arguments, count: count), undo: undo)
    case let body as WorkerOpBody:
      return op.withBody(body.binding(arguments, count: count), undo: undo)
    default:
      let why =
        op is Flow || op is MachineOp ? "give it data" : "it is written in Swift"
      throw host.usage(call, "op '\(op.name)' takes no arguments: \(why)")
    }
  }

  /// Starts the op or flow that is `self`, with the data of argument 1.
  func start(_ arguments: Arguments) throws -> Run {
    guard let op = host.op(arguments.call, 1) else {
      throw arguments.wrongSelf("op or flow")
    }
    if let complaint = op.complaintOfClass { throw host.usage(arguments.call, complaint) }
    let data = try arguments.data(1)
    let options =
      try arguments.isNil(2)
      ? nil
      : RunOptions(arguments.options(2, known: RunOptions.fields + ["overlap", "key"]))
    let adopt = try host.adopter(options)
    return try Overlaps.start(op, options, host) {
      $0.start(on: host.loop, data: data, owner: host.currentOp, adopt: adopt)
    }
  }

  // MARK: Fields

  /// Reads `op.name`, `op.needs`, …: declarations and policy of a kind of ops, which has these methods. Tables are copies.
  static func property(
    of kind: String, _ methods: @escaping @autoclosure () -> LuaFields<BoundMethod>
  ) -> (ScriptHost, LuaCall) throws -> LuaAnswer {
    { host, call in try property(host, call, of: kind, methods) }
  }

  private static func property(
    _ host: ScriptHost, _ call: LuaCall, of kind: String, _ methods: () -> LuaFields<BoundMethod>
  ) throws -> LuaAnswer {
    guard let op = host.op(call, 1) else {
      throw Arguments(host, call, method: "__index").wrongSelf("op")
    }
    switch call.bytes(2).cases {
    case "name": return try host.answer(call, .bytes(op.name))
    case "doc": return try host.answer(call, op.doc)
    case "needs": return call.answer(.reference(try host.vm.table(of: op.needs)))
    case "gives": return call.answer(.reference(try host.vm.table(of: op.gives)))
    case "primary_input": return try host.answer(call, op.primaryInput)
    case "primary_output": return try host.answer(call, op.primaryOutput)
    case "retry":
      return call.answer(
        try op.retry.map { .reference(try Self(host: host).table(of: $0)) } ?? .nil)
    case "timeout": return call.answer(op.timeout.map { .number($0.inSeconds) } ?? .nil)
    case "grace": return call.answer(op.grace.map { .number($0.inSeconds) } ?? .nil)
    case "memory":
      return call.answer(op.memoryLimit.map { .integer(Int64($0.bytes)) } ?? .nil)
    case "effect": return try host.answer(call, .bytes(ByteString(op.effect.rawValue)))
    case "tags": return try host.answer(call, op.tags)
    case "limit": return call.answer(try Limits.value(of: op.limits, host))
    case "thread": return try host.answer(call, .bytes(ByteString(op.thread.rawValue)))
    default:
      return try host.absentField(
        call, of: op is Graph ? "a graph" : kind, known: fields + methods().names)
    }
  }

  private static let fields: [String] =
    ["name", "doc", "needs", "gives", "primary_input", "primary_output"] + PolicyOptions.fields

  /// A policy with all of its fields, including the defaults.
  private func table(of retry: RetryPolicy) throws -> LuaReference {
    let rule = retry.rule as? ScriptRetryRule
    var fields: [(ByteString, LuaValue)] = [
      ("attempts", .integer(Int64(retry.attempts))), ("jitter", .number(retry.jitter)),
    ]
    if let delay = rule?.delay {
      fields.append(("delay", .reference(delay)))
    } else {
      fields += [("delay", .number(retry.delay.inSeconds)), ("factor", .number(retry.factor))]
    }
    if let when = rule?.when { fields.append(("when", .reference(when))) }
    if let longest = retry.maxDelay { fields.append(("max_delay", .number(longest.inSeconds))) }
    return try host.vm.makeTable(fields: fields)
  }
}

extension Op {
  /// The thread on which its function runs.
  fileprivate var thread: OpThread { (body as? WorkerOpBody)?.thread ?? .main }

  /// The tags that a node needs in order to execute it, as text; nil for any node.
  fileprivate var tags: ByteString? {
    guard let body = body as? WorkerOpBody, body.thread == .remote, !body.tags.isEmpty else {
      return nil
    }
    return body.tags.text
  }
}

extension LuaVM {
  /// Keys with their types, in the form of `flow.op`.
  func table(of declarations: [Declaration]) throws -> LuaReference {
    try makeTable(
      fields: declarations.map { declared in
        if let function = declared.type.source as? LuaReference {
          return (declared.name, .reference(function))
        }
        return (declared.name, .string(declared.type.name))
      })
  }

  /// A list of names; nil for none.
  func list(of names: [ByteString]?) throws -> LuaValue {
    guard let names else { return .nil }
    return .reference(try makeList(count: names.count) { .string(names[$0]) })
  }
}
