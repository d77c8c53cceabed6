internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// An error on its way between the main state and a worker: the data for its table there.
final class WireError: Sendable {
  let plain: FlowError
  let values: WireBatch
  /// The fields of its table that the script gave, by name; the values are in `values`.
  let fields: [(name: ByteString, value: WireValue)]
  let cause: Cause?

  enum Cause {
    case value(WireValue)
    case error(WireError)
  }

  /// The maximum depth of nested causes.
  static let depthLimit = 16

  /// An error of another process.
  init(
    plain: FlowError, values: WireBatch, fields: [(name: ByteString, value: WireValue)],
    cause: Cause?
  ) {
    self.plain = plain
    self.values = values
    self.fields = fields
    self.cause = cause
  }

  /// An error of the host's loop; `depth` is the number of errors it is the cause of.
  init(_ error: FlowError, from host: ScriptHost, depth: Int = 0) {
    var batch = WireBatch()
    var fields: [(ByteString, WireValue)] = []
    var cause: Cause?
    if let table = host.table(of: error), let pairs = try? host.vm.pairs(of: table) {
      for (key, value) in pairs {
        guard case .string(let key) = key else { continue }
        let name = key
        if name == "cause" {
          cause = Self.cause(value, &batch, host, depth)
        } else if !ScriptHost.errorFields.contains(key) {
          fields.append((name, Self.wire(value, &batch, host)))
        }
      }
    }
    plain = error.with {
      $0.payload = nil
      // For an op of a group, the main state knows the whole path.
      if host.isWorker, let path = $0.path, $0.op?.bytes.starts(with: path.bytes) == true {
        $0.path = nil
      }
    }
    values = batch
    self.fields = fields
    self.cause = cause
  }

  private static func cause(
    _ value: LuaValue, _ batch: inout WireBatch, _ host: ScriptHost, _ depth: Int
  ) -> Cause {
    if depth < depthLimit, host.isError(value), case .reference(let table) = value,
      let error = try? host.flowError(table: table)
    {
      return .error(WireError(error, from: host, depth: depth + 1))
    }
    return .value(wire(value, &batch, host))
  }

  /// A value of the error, or its text if it can't travel.
  private static func wire(
    _ value: LuaValue, _ batch: inout WireBatch, _ host: ScriptHost
  ) -> WireValue {
    if let wired = try? host.wire(value, &batch) { return wired }
    let text = try? host.vm.tostringBytes(value)
    return .bytes(text.map { $0 } ?? "?")
  }

  /// The error on another loop, with its own table.
  func error(on host: ScriptHost) -> FlowError {
    guard let table = try? table(on: host) else { return plain }
    return plain.with(payload: table, on: host.loop)
  }

  private func table(on host: ScriptHost) throws -> LuaReference {
    var made: [(ByteString, LuaValue)] = []
    for field in fields {
      made.append((field.name, try host.luaValue(field.value, in: values)))
    }
    var causeValue = LuaValue.nil
    switch cause {
    case .value(let value): causeValue = try host.luaValue(value, in: values)
    case .error(let error): causeValue = .reference(try error.table(on: host))
    case nil: break
    }
    return try host.makeError(plain, cause: causeValue, fields: made)
  }
}
