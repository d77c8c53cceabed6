internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A value on its way between the main state and a worker.
///
/// Scalars and strings travel unencoded, which costs less than any code. Only tables are encoded,
/// into the buffer of their batch.
enum WireValue: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case number(Double)
  case bytes(ByteString)
  /// A table, at an offset of the batch's buffer.
  case table(Int)
  /// The same, secret: the value inside is at the given offset, after it.
  indirect case secret(WireValue)
}

/// Values that travel together.
struct WireBatch: Sendable {
  var values: ContiguousArray<WireValue> = []
  /// The tables among them; nil without any. The code that posts the batch releases it.
  private(set) var buffer: EncodedBuffer?

  init() {}

  /// A batch of another process.
  init(values: ContiguousArray<WireValue>, buffer: EncodedBuffer?) {
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
struct WireProblem: Error {
  private let error: any Error

  fileprivate init(_ error: any Error) {
    self.error = error
  }

  /// The failure because of the value with the name `name`.
  func failure(_ name: ByteString) -> FlowError {
    FlowError(.error, message(name), underlying: error)
  }

  /// The message about the value with the name `name`.
  func message(_ name: ByteString) -> ByteString {
    if let error = error as? EncodeError {
      return ByteString(describing: error.description(of: name.description))
    }
    return "\(name) can't go to or from a worker: \(ByteString(describing: error))"
  }
}

extension WireValue {
  /// A value that travels unencoded; nil for others.
  @inline(__always)
  init?(plain value: FlowValue) {
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
  init?(plain wired: WireValue) {
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
  func wire(_ value: FlowValue, _ batch: inout WireBatch) throws(WireProblem) -> WireValue {
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

  /// The same for a value of a script.
  func wire(_ value: LuaValue, _ batch: inout WireBatch) throws(WireProblem) -> WireValue {
    try wire(FlowValue(value), &batch)
  }

  /// A received value.
  func value(_ wired: WireValue, in batch: WireBatch) throws -> FlowValue {
    if let plain = FlowValue(plain: wired) { return plain }
    switch wired {
    case .secret(let inner): return .secret(try value(inner, in: batch))
    case .table(let offset):
      guard let buffer = batch.buffer else { return .null }
      return FlowValue(try vm.decode(buffer, at: offset).value)
    default: return .null
    }
  }

  /// The same as a script sees it.
  func luaValue(_ wired: WireValue, in batch: WireBatch) throws -> LuaValue {
    try luaValue(try value(wired, in: batch))
  }

  /// The reason why a value can't travel; nil if it can.
  func encodeProblem(_ value: FlowValue) -> WireProblem? {
    guard case .opaque = value else { return nil }
    var batch = WireBatch()
    do throws(WireProblem) {
      _ = try wire(value, &batch)
      return nil
    } catch {
      return error
    }
  }
}
