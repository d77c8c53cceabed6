internal import FlowEngine
internal import LuaVM

/// `retry`, `timeout` and `thread` as scripts write them.
struct PolicyOptions {
  /// The fields of an options table that are read here.
  static let fields = ["retry", "timeout", "thread"]

  let retry: RetryPolicy?
  let timeout: Double?

  init(_ options: Options) throws {
    retry = try Self.retry(options)
    timeout = try options.seconds("timeout", orZero: false)
    if let thread = try options.string("thread"), thread != "main" {
      throw options.arguments.wrong(
        options.index,
        "field 'thread': \"main\" expected, got \"\(thread)\" (workers aren't in this version)")
    }
  }

  /// A number of attempts, or a table.
  private static func retry(_ options: Options) throws -> RetryPolicy? {
    switch options.kind("retry") {
    case nil: return nil
    case .table?: break
    default:
      guard let attempts = try options.count("retry", expected: "table or number of attempts")
      else {
        return nil
      }
      return RetryPolicy(attempts: attempts)
    }
    guard let table = try options.table("retry") else { return nil }
    let fields = try Options(
      options.arguments, options.index, try options.arguments.host.vm.pairs(of: table),
      ["attempts", "delay", "factor", "max_delay", "jitter"], [], of: "retry")
    guard let attempts = try fields.count("attempts") else {
      throw fields.wrong("attempts", expected: "integer of at least 1")
    }
    let jitter = try fields.number("jitter", "a number from 0 to 1") { (0...1).contains($0) }
    let factor = try fields.number("factor", "a finite number, at least 0,") {
      $0.isFinite && $0 >= 0
    }
    return RetryPolicy(
      attempts: attempts, delay: try fields.seconds("delay", orZero: true) ?? 0,
      factor: factor ?? 1, maxDelay: try fields.seconds("max_delay", orZero: true),
      jitter: jitter ?? 0)
  }
}

extension ScriptHost {
  /// The policy for one place that a builder's call was given; nothing when it wasn't.
  func policy(_ arguments: Arguments, _ index: Int) throws -> (
    retry: RetryPolicy?, timeout: Double?
  ) {
    if arguments.isNil(index) { return (nil, nil) }
    let options = try arguments.options(index, known: PolicyOptions.fields)
    let policy = try PolicyOptions(options)
    return (policy.retry, policy.timeout)
  }

  /// `Op:with { … }`.
  static func opWith(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(host, call, method: "with")
    guard let op = host.op(call, 1) else { throw arguments.wrongSelf("op or flow") }
    let options = try arguments.options(
      1, known: ["name", "primary_input", "primary_output"] + PolicyOptions.fields)
    let policy = try PolicyOptions(options)
    let name = try options.string("name")
    if let name, name.isEmpty {
      throw arguments.wrong(1, "field 'name': a name is a non-empty string")
    }
    let made = op.with(
      name: name, retry: policy.retry, timeout: policy.timeout,
      primaryInput: try options.string("primary_input"),
      primaryOutput: try options.string("primary_output"))
    return call.answer(try host.value(of: made))
  }
}
