@_spi(Scripting) public import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.limit`, and the limits of a host by their names.
final class Limits: HostService {
  let type: LuaObjectType<Limit>
  private var all: [ByteString: Limit] = [:]

  private init(_ host: ScriptHost) throws {
    type = try host.vm.defineObjectType(
      "limit", of: Limit.self, methods: ["use": LuaMethod(host.bind(Self.use))],
      getter: host.bind(Self.property),
      metamethods: { _ in
        [
          "__tostring": LuaMethod(
            host.bind { host, call in
              let limit = try Self.limit(host, call, "__tostring")
              return call.answer(.string("limit: \(limit.name)"))
            })
        ]
      })
  }

  static func of(_ host: ScriptHost) throws -> Limits { try host.service { try Limits(host) } }

  static func install(in host: ScriptHost) {
    host.define("limit") { host, call in
      let arguments = Arguments(host, call, "limit")
      let name = try arguments.name(1)
      let limits = try of(host)
      return call.answer(try limits.define(name, arguments), limits.type)
    }
  }

  /// Makes a limit, or finds the one that has the name.
  private func define(_ name: ByteString, _ arguments: Arguments) throws -> Limit {
    let size: LimitSize?
    switch arguments.call.kind(2) {
    case .none, .nil: size = nil
    case .table:
      let options = try arguments.options(2, known: ["max_concurrent", "rate"])
      let (count, rate) = (try options.count("max_concurrent"), try options.rate("rate"))
      if count == nil, rate == nil {
        throw arguments.wrong(2, "field 'max_concurrent' or 'rate' expected, got neither")
      }
      size = LimitSize(maxConcurrent: count ?? .max, rate: rate)
    default:
      size = LimitSize(
        maxConcurrent: try arguments.count(2, expected: "integer of at least 1, or table,"),
        rate: nil)
    }
    // In a worker, the main thread finds it when it is used.
    let host = arguments.host
    let found =
      host.isWorker
      ? host.service { WorkerLimits() }.proxy(of: name, size) : define(name, size)
    switch found {
    case .success(let limit): return limit
    case .failure(let problem): throw arguments.wrong(2, problem.message)
    }
  }

  /// Makes a limit, or finds the one that has the name; fails when there is none, or one of another size.
  func define(_ name: ByteString, _ size: LimitSize?) -> Result<Limit, FlowError> {
    guard let known = all[name] else {
      guard let size else {
        return .failure(
          .usage("limit '\(name)' isn't defined: give how many may hold it"))
      }
      let made = Limit(name, maxConcurrent: size.maxConcurrent, rate: size.rate)
      all[name] = made
      return .success(made)
    }
    let other = LimitSize(maxConcurrent: known.maxConcurrent, rate: known.rate)
    if let size, size != other { return .failure(other.problem(of: name)) }
    return .success(known)
  }

  /// Makes a limit of the program known to the script, by its name.
  func share(_ limit: Limit) { all[limit.name] = limit }

  /// The limit that has the name; nil if there is none.
  func named(_ name: ByteString) -> Limit? { all[name] }

  private static func limit(_ host: ScriptHost, _ call: LuaCall, _ method: String) throws -> Limit {
    guard let limit = call.object(1, try of(host).type) else {
      throw Arguments(host, call, method: method).wrongSelf("limit")
    }
    return limit
  }

  private static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    let limit = try limit(host, call, "__index")
    if host.isWorker, call.bytes(2) != "name", call.bytes(2) != "use" {
      throw host.usage(call, "a worker knows only the name of a limit")
    }
    switch call.bytes(2).cases {
    case "name": return call.answer(.string(limit.name))
    case "max_concurrent":
      return call.answer(
        limit.maxConcurrent == .max ? .number(.infinity) : .integer(Int64(limit.maxConcurrent)))
    case "rate": return call.answer(try value(of: limit.rate, host))
    case "running": return call.answer(.integer(Int64(limit.running)))
    case "waiting": return call.answer(.integer(Int64(limit.waiting)))
    default:
      return try host.absentField(
        call, of: "a limit", known: ["name", "max_concurrent", "rate", "running", "waiting", "use"])
    }
  }

  private static func value(of rate: RateLimit?, _ host: ScriptHost) throws -> LuaValue {
    guard let rate else { return .nil }
    return .reference(
      try host.vm.makeTable(
        values: [.integer(Int64(rate.count))], fields: [("per", .number(rate.period.inSeconds))]))
  }

  /// The limits of an op as scripts see them: nil, one, or a list.
  static func value(of limits: [Limit], _ host: ScriptHost) throws -> LuaValue {
    let type = try of(host).type
    if limits.isEmpty { return .nil }
    let values = try limits.map { try host.vm.value(of: $0, type) }
    return values.count == 1 ? values[0] : .reference(try host.vm.makeTable(values: values))
  }

  // MARK: Use

  /// `limit:use(fn, …)`.
  private static func use(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    let limit = try limit(host, call, "use")
    let arguments = Arguments(host, call, method: "use")
    let function = try arguments.function(1)
    let isHeld = isHeld(limit, host)
    let op = host.currentOp?.displayName
    return try LimitedWait.begin(call, function, host) { spawned in
      if host.isWorker, !isHeld {
        host.service { WorkerLimits() }.begin(spawned, holding: limit, host)
      } else {
        let hold = LimitHold(isHeld ? [] : [limit], on: host.loop, within: spawned.owner) {
          [unowned spawned] in op ?? spawned.title
        }
        spawned.begin(holding: hold)
      }
    }
  }

  /// Whether something around the running code holds a limit.
  private static func isHeld(_ limit: Limit, _ host: ScriptHost) -> Bool {
    if let task = host.currentTask { return task.tasksAround?.hold(limit) == true }
    return host.currentOp?.isHeld(limit) ?? host.currentRun?.isHeld(limit) ?? false
  }
}

extension Options {
  /// A limit, the name of one, or a list of these; nil without the field.
  func limits(_ name: ByteString) throws -> [Limit]? {
    guard let value = value(name) else { return nil }
    let limits = try Limits.of(arguments.host)
    func limit(_ value: LuaValue) throws -> Limit {
      if case .string(let wanted) = value {
        if let limit = limits.named(wanted) { return limit }
        throw arguments.wrong(index, "field '\(name)': limit '\(wanted)' isn't defined")
      }
      guard let limit = arguments.host.vm.object(in: value, limits.type) else {
        throw wrong(name, expected: "limit, name of one, or list of these")
      }
      return limit
    }
    guard case .reference(let list) = value, list.kind == .table else { return [try limit(value)] }
    var found: [Limit] = []
    for (key, value) in try arguments.host.vm.pairs(of: list) {
      guard case .integer = key else {
        throw wrong(name, expected: "limit, name of one, or list of these")
      }
      let next = try limit(value)
      if !found.contains(where: { $0 === next }) { found.append(next) }
    }
    return found
  }
}

extension ScriptHost {
  /// Lets scripts use a limit of the program, by `flow.limit(name)` and by its name as a policy.
  ///
  /// - Parameter limit: A limit, which may be shared with other hosts of this thread, and with ops written in Swift.
  /// - Throws: A `LuaError` when memory runs out.
  public func share(_ limit: Limit) throws { try Limits.of(self).share(limit) }
}
