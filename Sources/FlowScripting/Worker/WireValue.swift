internal import FlowEngine
internal import LuaVM

/// A value on its way between the main state and a worker.
///
/// Scalars and strings go as they are, which costs less than any code; only tables are encoded,
/// into the buffer of the batch that they are part of.
enum WireValue: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case number(Double)
  case bytes(ByteString)
  /// A table, at an offset of the batch's buffer.
  case table(Int)
  /// The same, secret: what is inside stands at the place given, behind.
  indirect case secret(WireValue)
}

/// Values that travel together.
struct WireBatch: Sendable {
  var values: ContiguousArray<WireValue> = []
  /// The tables among them; nil without any. Whoever posts the batch lets go of it.
  private(set) var buffer: TransferBuffer?

  init() {}

  /// Where tables are to be encoded.
  fileprivate mutating func makeBuffer() -> TransferBuffer {
    if let buffer { return buffer }
    let made = TransferBuffer()
    buffer = made
    return made
  }
}

/// Why a value can't travel.
struct WireProblem: Error {
  private let error: any Error

  fileprivate init(_ error: any Error) {
    self.error = error
  }

  /// The sentence about the value that is called `name`.
  func message(_ name: ByteString) -> ByteString {
    if let error = error as? TravelError {
      return ByteString(describing: error.description(of: name.description))
    }
    return "\(name) can't go to or from a worker: \(ByteString(describing: error))"
  }
}

extension WireValue {
  /// A value that goes as it is; nil for others.
  @inline(__always)
  init?(plain value: Value) {
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

extension Value {
  /// A value that came as it is; nil for others.
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
  func wire(_ value: Value, _ batch: inout WireBatch) throws(WireProblem) -> WireValue {
    if let plain = WireValue(plain: value) { return plain }
    guard case .opaque(let opaque) = value else { return .null }
    if let secret = opaque as? SecretValue { return .secret(try wire(secret.plain, &batch)) }
    let buffer = batch.makeBuffer()
    let start = buffer.count
    do {
      // A list or map of the engine's goes as the table that scripts see.
      try vm.encode(try luaValue(value), into: buffer)
    } catch {
      throw WireProblem(error)
    }
    return .table(start)
  }

  /// The same for a value of a script.
  func wire(_ value: LuaValue, _ batch: inout WireBatch) throws(WireProblem) -> WireValue {
    try wire(Value(value), &batch)
  }

  /// A value that has arrived.
  func value(_ wired: WireValue, in batch: WireBatch) throws -> Value {
    if let plain = Value(plain: wired) { return plain }
    switch wired {
    case .secret(let inner): return .secret(try value(inner, in: batch))
    case .table(let offset):
      guard let buffer = batch.buffer else { return .null }
      return Value(try vm.decode(buffer, at: offset).value)
    default: return .null
    }
  }

  /// The same as a script sees it.
  func luaValue(_ wired: WireValue, in batch: WireBatch) throws -> LuaValue {
    try luaValue(try value(wired, in: batch))
  }

  /// Why a value can't travel; nil when it can.
  func travelProblem(_ value: Value) -> WireProblem? {
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
