@_spi(Scripting) package import FlowEngine
@_spi(Scripting) package import LuaVM

/// A value on its way between the main state and a worker.
///
/// Scalars and strings travel unencoded, which costs less than any code. Only tables are encoded,
/// into the buffer of their batch.
package enum WireValue: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case number(Double)
  case bytes(ByteString)
  /// A table, at an offset of the batch's buffer.
  case table(Int)
  /// A secret value: the value inside is at the given offset, after it.
  indirect case secret(WireValue)
}

/// Values that travel together.
package struct WireBatch: Sendable {
  package var values: ContiguousArray<WireValue> = []
  /// The tables among them; nil without any. The code that posts the batch releases it.
  package private(set) var buffer: EncodedBuffer?

  package init() {}

  /// A batch of another process.
  package init(values: ContiguousArray<WireValue>, buffer: EncodedBuffer?) {
    self.values = values
    self.buffer = buffer
  }

  /// The buffer for encoded tables.
  fileprivate mutating func makeBuffer() -> EncodedBuffer {
    if let buffer { return buffer }
    let made = EncodedBuffer()
    buffer = made
    return made
  }
}

/// The reason why a value can't travel.
package struct WireProblem: Error {
  private let error: any Error

  fileprivate init(_ error: any Error) {
    self.error = error
  }

  /// The failure because of the value with the name `name`.
  package func failure(_ name: ByteString) -> FlowError {
    FlowError(.error, message(name), underlying: error)
  }

  /// The message about the value with the name `name`.
  package func message(_ name: ByteString) -> ByteString {
    if let error = error as? EncodeError {
      return ByteString(describing: error.description(of: name.description))
    }
    return "\(name) can't go to or from a worker: \(ByteString(describing: error))"
  }
}

extension WireValue {
  /// A value that travels unencoded; nil for others.
  @inline(__always)
  package init?(plain value: FlowValue) {
    switch value {
    case .null: self = .null
    case .boolean(let flag): self = .boolean(flag)
    case .integer(let integer): self = .integer(integer)
    case .number(let number): self = .number(number)
    case .bytes(let bytes): self = .bytes(bytes)
    case .opaque: return nil
    }
  }
}

extension FlowValue {
  /// A received unencoded value; nil for others.
  @inline(__always)
  package init?(plain wired: WireValue) {
    switch wired {
    case .null: self = .null
    case .boolean(let flag): self = .boolean(flag)
    case .integer(let integer): self = .integer(integer)
    case .number(let number): self = .number(number)
    case .bytes(let bytes): self = .bytes(bytes)
    case .secret, .table: return nil
    }
  }
}

extension ScriptHost {
  /// Makes a value ready to travel with a batch; throws a `WireProblem`.
  package func wire(_ value: FlowValue, _ batch: inout WireBatch) throws(WireProblem) -> WireValue {
    if let plain = WireValue(plain: value) {
      if isWorker, case .bytes(let text) = plain { handOver(text) }
      return plain
    }
    guard case .opaque(let opaque) = value else { return .null }
    if let secret = opaque as? SecretValue { return .secret(try wire(secret.plain, &batch)) }
    let buffer = batch.makeBuffer()
    let start = buffer.count
    do {
      // A list or map of the engine travels as the table that scripts see.
      try vm.encode(try luaValue(value), into: buffer)
    } catch {
      throw WireProblem(error)
    }
    if !isWorker { loop.memory?.add(buffer, bytes: buffer.count) }
    return .table(start)
  }

  /// Wires a value of a script.
  package func wire(_ value: LuaValue, _ batch: inout WireBatch) throws(WireProblem) -> WireValue {
    try wire(FlowValue(value), &batch)
  }

  /// A received value.
  package func value(_ wired: WireValue, in batch: WireBatch) throws -> FlowValue {
    if let plain = FlowValue(plain: wired) { return plain }
    switch wired {
    case .secret(let inner): return .secret(try value(inner, in: batch))
    case .table(let offset):
      guard let buffer = batch.buffer else { return .null }
      return FlowValue(try vm.decode(buffer, at: offset).value)
    default: return .null
    }
  }

  /// A received value as a script sees it.
  package func luaValue(_ wired: WireValue, in batch: WireBatch) throws -> LuaValue {
    try luaValue(try value(wired, in: batch))
  }

  /// The reason why a value can't travel; nil if it can.
  package func encodeProblem(_ value: FlowValue) -> WireProblem? {
    guard case .opaque = value else { return nil }
    var batch = WireBatch()
    do throws(WireProblem) {
      _ = try wire(value, &batch)
      return nil
    } catch {
      return error
    }
  }

  /// The values of keys in a bucket, ready to travel; keys without a value are left out.
  func wire(
    _ names: [ByteString], of bucket: DataBucket
  ) throws(FlowError) -> (keys: [ByteString], data: WireBatch) {
    var keys: [ByteString] = []
    var batch = WireBatch()
    for name in names {
      let key = loop.keys.intern(name)
      guard let value = bucket.get(key) else { continue }
      do throws(WireProblem) {
        let wired = try wire(value, &batch)
        keys.append(name)
        batch.values.append(bucket.isSecret(key) ? .secret(wired) : wired)
      } catch {
        throw error.failure("the value of <\(name)>")
      }
    }
    return (keys, batch)
  }
}

/// An error on its way between the main state and a worker: the data for its table there.
package final class WireError: Sendable {
  package let plain: FlowError
  package let values: WireBatch
  /// The fields of its table that the script gave, by name; the values are in `values`.
  package let fields: [(name: ByteString, value: WireValue)]
  package let cause: Cause?

  package enum Cause {
    case value(WireValue)
    case error(WireError)
  }

  /// The maximum depth of nested causes.
  package static let depthLimit = 16

  /// An error of another process.
  package init(
    plain: FlowError, values: WireBatch, fields: [(name: ByteString, value: WireValue)],
    cause: Cause?
  ) {
    self.plain = plain
    self.values = values
    self.fields = fields
    self.cause = cause
  }

  /// An error of the host's loop; `depth` is the number of errors it is the cause of.
  package init(_ error: FlowError, from host: ScriptHost, depth: Int = 0) {
    var batch = WireBatch()
    var fields: [(ByteString, WireValue)] = []
    var cause: Cause?
    if let table = host.table(of: error), let pairs = try? host.vm.pairs(of: table) {
      for (key, value) in pairs {
        guard case .string(let key) = key else { continue }
        let name = key
        if name == "cause" {
          cause = Self.cause(value, &batch, host, depth)
        } else if !ScriptHost.errorFields.contains(key), key != "others" || error.others.isEmpty {
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
    let text = try? host.vm.ownText(of: value)
    return .bytes(text.map { $0 } ?? "?")
  }

  /// The error on another loop, with its own table.
  package func error(on host: ScriptHost) -> FlowError {
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
