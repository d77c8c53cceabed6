internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `retry`, `timeout`, `grace`, `effect`, `cache`, `undo`, `thread`, `memory`, `tags` and `limit` as scripts write them.
struct PolicyOptions {
  /// The fields of an options table that this type reads.
  static let fields: [String] = [
    "retry", "timeout", "grace", "effect", "cache", "undo", "thread", "memory", "tags", "limit",
  ]

  let retry: RetryPolicy?
  let timeout: Duration?
  /// The time that its cleanups have after a stop; nil keeps the previous value.
  let grace: Duration?
  /// The treatment by a kept run; nil keeps the previous value.
  let effect: OpEffect?
  /// Which results may come from another run; nil keeps the previous value.
  let cache: CachePolicy?
  /// The function that undoes it, on the main thread; nil keeps the previous one.
  let undo: ScriptOpBody?
  /// The thread on which it runs; nil keeps the previous one.
  let thread: OpThread?
  /// The most that its executions may allocate in a worker; nil keeps the previous value.
  let memory: ByteCount?
  /// The tags that a node needs in order to execute it; nil keeps the previous value.
  let tags: RemoteTags?
  /// The limits that it holds while it executes; nil keeps the previous ones.
  let limits: [Limit]?

  init(_ options: Options) throws {
    retry = try Self.retry(options)
    timeout = try options.duration("timeout", orZero: false)
    grace = try options.number("grace", "a number of seconds of at least 0, or math.huge,") {
      $0 >= 0
    }.map { Duration(clampingSeconds: $0) }
    effect = try options.string("effect").map { name in
      guard let effect = OpEffect(rawValue: name.description) else {
        throw options.arguments.wrong(
          options.index, "field 'effect': \"once\" or \"repeat\" expected, got \"\(name)\"")
      }
      return effect
    }
    cache = try Self.cache(options)
    if cache != nil {
      let host = options.arguments.host
      host.ending.originOfCache = host.ending.originOfCache ?? options.arguments.call.origin
    }
    undo = try options.function("undo").map { ScriptOpBody(options.arguments.host, $0) }
    thread = try options.string("thread").map { name in
      guard let thread = OpThread(rawValue: name.description) else {
        throw options.arguments.wrong(
          options.index, "field 'thread': \(OpThread.expected), got \"\(name)\"")
      }
      return thread
    }
    memory = try Self.memory(options)
    tags = try RemoteTags(options)
    limits = try options.limits("limit")
    if cache != nil, undo != nil {
      throw options.arguments.wrong(
        options.index,
        "field 'cache': not with 'undo', which could undo what another run relies on")
    }
  }

  /// With less, hardly any function can be called; with more, a machine has no such address space.
  private static let memoryRange = ByteCount(64 << 10)...ByteCount(16 << 40)

  /// A number of bytes, or a text such as `64M`.
  private static func memory(_ options: Options) throws -> ByteCount? {
    let count: ByteCount?
    let shown: ByteString
    switch options.value("memory") {
    case nil: return nil
    case .integer(let bytes)?:
      count = Int(exactly: bytes).map { ByteCount($0) }
      shown = FlowValue.integer(bytes).logText
    case .number(let bytes)?:
      count = Int(exactly: bytes).map { ByteCount($0) }
      shown = FlowValue.number(bytes).logText
    case .string(let text)?:
      count = ByteCount(parsing: text)
      shown = "\"\(text)\""
    default: throw options.wrong("memory", expected: "number or string")
    }
    guard let count, memoryRange.contains(count) else {
      throw options.arguments.wrong(
        options.index,
        "field 'memory': a number of bytes, or a text such as \"64M\", from 64K to 16T expected, got \(shown)"
      )
    }
    return count
  }

  /// `true`, or a table.
  private static func cache(_ options: Options) throws -> CachePolicy? {
    switch options.value("cache") {
    case nil: return nil
    case .boolean(let flag)?: return flag ? CachePolicy() : nil
    default: break
    }
    guard options.kind("cache") == .table, let table = try options.table("cache") else {
      throw options.wrong("cache", expected: "table or boolean")
    }
    let fields = try Options(
      options.arguments, options.index, try options.arguments.host.vm.pairs(of: table),
      ["expires", "version", "key"], of: "cache")
    var version: ByteString = ""
    switch fields.value("version") {
    case nil: break
    case .string(let text)?: version = text
    case .integer(let number)?: version = FlowValue.integer(number).logText
    default: throw fields.wrong("version", expected: "string or integer")
    }
    var policy = CachePolicy(
      expires: try fields.duration("expires", orZero: true), version: version)
    policy.key = try fields.function("key").map { ScriptCacheKey(options.arguments.host, $0) }
    return policy
  }

  /// A new op with the limits of these options.
  func limiting(_ op: Op) -> Op { limits == nil ? op : op.with(limits: limits) }

  /// An op with the effect and the cache of these options.
  func keeping(_ op: Op) -> Op {
    effect == nil && cache == nil ? op : op.with(effect: effect, cache: cache)
  }

  /// Throws an error of use when an effect or a cache is given for something that isn't kept as a whole.
  func checkKeeping(of op: Op, _ options: Options) throws {
    guard effect != nil || cache != nil, op is Flow || op is MachineOp else { return }
    throw options.arguments.wrong(
      options.index,
      "field '\(effect != nil ? "effect" : "cache")': it belongs to an op, not to '\(op.name)', whose steps are kept one by one"
    )
  }

  /// A number of attempts, or a table.
  private static func retry(_ options: Options) throws -> RetryPolicy? {
    switch options.kind("retry") {
    case nil: return nil
    case .table?: break
    default:
      return try options.count("retry", expected: "table, or number of attempts of at least 1,")
        .map { RetryPolicy(attempts: $0) }
    }
    guard let table = try options.table("retry") else { return nil }
    let fields = try Options(
      options.arguments, options.index, try options.arguments.host.vm.pairs(of: table),
      ["attempts", "delay", "factor", "max_delay", "jitter", "when"], of: "retry")
    guard let attempts = try fields.count("attempts") else {
      throw fields.wrong("attempts", expected: "integer of at least 1")
    }
    let jitter = try fields.number("jitter", "a number from 0 to 1") { (0...1).contains($0) }
    let factor = try fields.number("factor", "a finite number, at least 0,") {
      $0.isFinite && $0 >= 0
    }
    let when = try fields.function("when")
    let delay = fields.kind("delay") == .function ? try fields.function("delay") : nil
    if delay != nil, factor != nil {
      throw options.arguments.wrong(
        options.index, "field 'retry.factor': not with a function as 'delay'")
    }
    if delay == nil, let kind = fields.kind("delay"), kind != .number {
      throw fields.wrong("delay", expected: "number or function")
    }
    return RetryPolicy(
      attempts: attempts,
      delay: delay == nil ? try fields.duration("delay", orZero: true) ?? .zero : .zero,
      factor: factor ?? 1, maxDelay: try fields.duration("max_delay", orZero: true),
      jitter: jitter ?? 0,
      rule: when == nil && delay == nil
        ? nil : ScriptRetryRule(options.arguments.host, when: when, delay: delay))
  }
}

extension PolicyOptions {
  /// The undo for an op, with the arguments that are bound to the op.
  func undo(of op: Op) -> ScriptOpBody? { undo?.binding(as: op) }

  /// A policy with these values over those of another one.
  func over(_ base: OpPolicy?, undo: ScriptOpBody?) -> OpPolicy? {
    .make(base, retry: retry, timeout: timeout, grace: grace, undo: undo, limits: limits)
  }
}

struct PolicyBindings {
  let host: ScriptHost

  /// The policy for one place, from a call of the builder; the default without one.
  ///
  /// - Returns: The policy, and the op for that thread.
  func policy(
    _ arguments: Arguments, _ index: Int, for op: Op, isFinal: Bool = false
  ) throws -> (op: Op, policy: OpPolicy?) {
    if arguments.isNil(index) { return (op, op.policy) }
    let options = try arguments.options(index, known: PolicyOptions.fields)
    let policy = try PolicyOptions(options)
    try policy.checkKeeping(of: op, options)
    if isFinal, policy.undo != nil {
      throw arguments.wrong(index, "field 'undo': a final step is never undone")
    }
    let placed = policy.keeping(try Self(host: host).op(op, with: policy, options))
    return (placed, policy.over(placed.policy, undo: policy.undo(of: placed)))
  }

  /// An op that runs on the thread and with the memory of a policy; the op itself if it already does.
  func op(_ op: Op, with policy: PolicyOptions, _ options: Options) throws -> Op {
    let placed = try Self(host: host).op(op, on: policy.thread, options)
    try Self.checkStreams(of: placed, options)
    if policy.memory == nil, policy.tags == nil, placed === op { return op }
    guard let body = placed.body as? WorkerOpBody else {
      if let problem = Self.problem(ofMemory: policy.memory ?? op.memoryLimit)
        ?? Self.problem(ofTags: policy.tags, isRemote: false)
      {
        throw options.arguments.wrong(options.index, problem)
      }
      return placed
    }
    return placed.withBody(try Self(host: host).body(body, policy, options))
  }

  /// Refuses streams of an op on other nodes: each item would be a message that others wait for.
  static func checkStreams(of op: Op, _ options: Options) throws {
    guard let body = op.body as? WorkerOpBody, body.thread == .remote,
      let stream = (op.needs + op.gives).first(where: \.type.isStream)
    else { return }
    throw options.arguments.wrong(
      options.index,
      "a stream isn't there for thread = \"remote\": <\(stream.name)> would pass items between nodes"
    )
  }

  /// A body with the limit and the tags of a policy.
  private func body(
    _ body: WorkerOpBody, _ policy: PolicyOptions, _ options: Options
  ) throws -> WorkerOpBody {
    if let problem = Self.problem(ofTags: policy.tags, isRemote: body.thread == .remote) {
      throw options.arguments.wrong(options.index, problem)
    }
    var body = body
    if let memory = policy.memory { body = body.limited(to: memory) }
    if let tags = policy.tags { body = body.placed(.remote, tags) }
    return body
  }

  /// The reason why an op that doesn't run on other nodes can't have tags.
  private static func problem(ofTags tags: RemoteTags?, isRemote: Bool) -> ByteString? {
    tags == nil || isRemote
      ? nil : "field 'tags': only an op with thread = \"remote\" can have them"
  }

  /// The reason why an op that doesn't run in a worker can't have a limit.
  private static func problem(ofMemory memory: ByteCount?) -> ByteString? {
    memory == nil
      ? nil : "field 'memory': only an op with thread = \"worker\" or \"remote\" can have it"
  }

  private func op(_ op: Op, on thread: OpThread?, _ options: Options) throws -> Op {
    switch (thread, op.body) {
    case (nil, _), (.main?, is ScriptOpBody): return op
    case (.main?, let body as WorkerOpBody): return op.withBody(body.onMain())
    case (.main?, _): return op
    case (let thread?, let body as WorkerOpBody):
      return body.thread == thread ? op : op.withBody(body.placed(thread, body.tags))
    case (let thread?, let body as ScriptOpBody):
      return op.withBody(
        try workerBody(body.function, options, of: op.name).placed(thread, RemoteTags())
          .binding(body.arguments, count: body.argumentCount))
    case (_?, let body as WrappedOpBody):
      throw options.arguments.wrong(
        options.index,
        "field 'thread': a wrapper of '\(body.wrapped.name)' runs on the main thread; give it an op "
          + "that runs in a worker")
    case (_?, _):
      throw options.arguments.wrong(
        options.index,
        "field 'thread': only ops written in Lua can run in a worker, not '\(op.name)'")
    }
  }

  /// The body of an op that runs in a worker; throws an error of use when there are no workers, or its
  /// function can't travel.
  private func workerBody(
    _ function: LuaReference, _ options: Options, of name: ByteString
  ) throws -> WorkerOpBody {
    if let problem = host.problemOfWorkers {
      throw options.arguments.wrong(
        options.index,
        "field 'thread': '\(name)' can't run in a worker, because \(problem)")
    }
    do {
      let position = options.arguments.call.position
      return WorkerOpBody(try WorkerFunction(host, function, at: position))
    } catch let error as EncodeError {
      throw host.usage(options.arguments.call, ByteString(describing: error))
    }
  }

  /// The body of an op whose options are these.
  func body(
    _ function: LuaReference, _ policy: PolicyOptions, _ options: Options, of name: ByteString
  ) throws -> any OpBody {
    guard let thread = policy.thread, thread != .main else {
      if let problem = Self.problem(ofMemory: policy.memory)
        ?? Self.problem(ofTags: policy.tags, isRemote: false)
      {
        throw options.arguments.wrong(options.index, problem)
      }
      return ScriptOpBody(host, function)
    }
    let body = try workerBody(function, options, of: name).placed(thread, RemoteTags())
    return try Self(host: host).body(body, policy, options)
  }

  /// `Op:with { … }`.
  static func with(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(host, call, method: "with")
    guard let op = host.op(call, 1) else { throw arguments.wrongSelf("op or flow") }
    let options = try arguments.options(
      1, known: ["name", "keys", "primary_input", "primary_output"] + PolicyOptions.fields)
    let policy = try PolicyOptions(options)
    let name = try options.string("name")
    if let name, name.isEmpty {
      throw arguments.wrong(1, "field 'name': a name is a non-empty string")
    }
    try policy.checkKeeping(of: op, options)
    let renamed = try Self(host: host).renamed(op, options)
    let placed = try Self(host: host).op(renamed, with: policy, options)
    let made = placed.with(
      name: name, retry: policy.retry, timeout: policy.timeout, grace: policy.grace,
      effect: policy.effect, cache: policy.cache, undoBody: policy.undo(of: placed),
      limits: policy.limits, primaryInput: try options.string("primary_input"),
      primaryOutput: try options.string("primary_output"))
    return call.answer(try host.value(of: made))
  }

  /// The op with other names for its keys: `keys = { path = "file" }`.
  private func renamed(_ op: Op, _ options: Options) throws -> Op {
    guard let table = try options.table("keys") else { return op }
    let wrong = { (problem: String) in
      options.arguments.wrong(options.index, "field 'keys': \(problem)")
    }
    let own = Set((op.needs + op.gives).map(\.name))
    var names: [ByteString: ByteString] = [:]
    for (key, value) in try host.vm.pairs(of: table) {
      guard case .string(let name) = key, case .string(let other) = value else {
        let other = if case .string = key { value } else { key }
        throw wrong("names of keys expected, got \(host.kindName(of: other))")
      }
      if other.isEmpty { throw wrong("names of keys expected, got an empty one") }
      if !own.isEmpty, !own.contains(name) {
        let hint = NearestName.of(name, in: own.sorted()).map { " (did you mean '\($0)'?)" } ?? ""
        throw wrong("[\(op.name)] neither needs nor gives <\(name)>\(hint)")
      }
      names[name] = other
    }
    var seen: Set<ByteString> = []
    for name in own.union(names.keys).sorted() where !seen.insert(names[name] ?? name).inserted {
      throw wrong("two keys would be <\(names[name] ?? name)>")
    }
    return op.renamingKeys(names)
  }
}
