internal import CFlowLua
internal import CLua
internal import Glibc

extension LuaVM {
  // MARK: Values

  /// Appends a value to a buffer. Tables go by value, cycles and sharing kept, without running
  /// metamethods; their metatables by the name of the module that holds them, or as that of errors.
  /// Throws a `TravelError` that names what can't go, such as a table with any other metatable; the
  /// buffer is then as it was.
  public func encode(_ value: LuaValue, into buffer: TransferBuffer) throws {
    try enter()
    try check(withRawValues(of: self, [value]) { flowlua_push_protected(host, $0) })
    defer { flowlua_pop(running, 1) }
    try encode(in: running, at: -1, into: buffer)
  }

  /// The same for the value at an index of a stack.
  func encode(in lua: OpaquePointer, at index: Int32, into buffer: TransferBuffer) throws {
    var refusal = flowlua_refusal()
    let status = flowlua_encode(host, lua, index, &buffer.raw, &refusal)
    if status != LUA_OK { try finishEncoding(status, &refusal, isCode: false) }
  }

  /// The value at an offset of a buffer, and where the one behind it begins. Throws a `LuaError` of
  /// code `argument` for bytes that nobody encoded.
  public func decode(
    _ buffer: TransferBuffer, at offset: Int = 0
  ) throws -> (value: LuaValue, end: Int) {
    try enter()
    let raw = buffer.raw
    guard let bytes = raw.bytes, offset >= 0, offset <= raw.count else {
      throw LuaError(.argument, LuaString("there is no encoded value at byte \(offset)"))
    }
    var used = 0
    var problem: UnsafePointer<CChar>?
    let lua = running
    let status = flowlua_decode(
      host, lua, bytes + offset, raw.count - offset, 1, &used, &problem)
    try finishDecoding(status, problem, at: offset + used)
    return (try popValue(lua), offset + used)
  }

  func finishEncoding(
    _ status: Int32, _ refusal: inout flowlua_refusal, isCode: Bool
  ) throws {
    secrets?.letGo()
    if status == Int32(FLOWLUA_REFUSED) { throw TravelError(&refusal, isCode: isCode) }
    try check(status)
  }

  func finishDecoding(
    _ status: Int32, _ problem: UnsafePointer<CChar>?, at offset: Int
  ) throws {
    if status == Int32(FLOWLUA_MALFORMED) {
      let reason = problem.map { String(cString: $0) } ?? ""
      throw LuaError(.argument, LuaString("can't decode a value: \(reason) (at byte \(offset))"))
    }
    try check(status)
  }

  // MARK: Secrets

  /// Says which objects travel as a mark around a value, and arrive as objects again.
  ///
  /// - Parameters:
  ///   - type: The type of such objects.
  ///   - unwrap: The value inside; nil when it can't go.
  ///   - wrap: An object with a value inside; nil when there is none.
  public func setSecretType<Object: AnyObject>(
    _ type: LuaObjectType<Object>, unwrap: @escaping (Object) -> LuaValue?,
    wrap: @escaping (LuaValue) -> Object?
  ) {
    checkOwner()
    secrets = SecretTravel(
      type: type.id,
      unwrap: { pointer in
        unwrap(Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue())
      },
      wrap: { value in wrap(value).map { Unmanaged.passRetained($0).toOpaque() } })
    flowlua_set_secret_type(host, type.id)
  }

  func takeOut(
    of object: UnsafeMutableRawPointer, into raw: inout flowlua_value
  ) -> Bool {
    guard let secrets, let value = secrets.unwrap(object) else { return false }
    switch value {
    case .string(let string):
      let count = string.bytes.count
      guard let bytes = malloc(max(count, 1)) else { return false }
      UnsafeMutableRawBufferPointer(start: bytes, count: count).copyBytes(from: string.bytes)
      raw = flowlua_value(
        kind: Int32(FLOWLUA_STRING), reference: 1, integer: Int64(count), number: 0,
        pointer: UnsafeRawPointer(bytes))
    case .reference(let reference):
      guard reference.vm === self else { return false }
      secrets.held.append(reference)
      raw = .reference(reference.id)
    default: raw = flowlua_value(scalar: value)
    }
    return true
  }

  func mark(_ raw: inout flowlua_value) -> Bool {
    let value: LuaValue =
      switch Int(raw.kind) {
      case FLOWLUA_STRING:
        .string(
          LuaString(
            Array(UnsafeRawBufferPointer(start: raw.pointer, count: Int(raw.integer)))))
      case FLOWLUA_REFERENCE:
        .reference(
          LuaReference(
            vm: self, id: raw.reference,
            kind: LuaKind(rawValue: Int32(truncatingIfNeeded: raw.integer)) ?? .none))
      default: raw.scalar
      }
    guard let secrets, let object = secrets.wrap(value) else { return false }
    raw = flowlua_value(
      kind: Int32(FLOWLUA_OBJECT), reference: secrets.type, integer: 0, number: 0,
      pointer: UnsafeRawPointer(object))
    return true
  }
}

/// How objects of one type travel.
final class SecretTravel {
  let type: Int32
  let unwrap: (UnsafeMutableRawPointer) -> LuaValue?
  let wrap: (LuaValue) -> UnsafeMutableRawPointer?
  /// What was taken out of secrets and is not written yet.
  var held: [LuaReference] = []

  init(
    type: Int32, unwrap: @escaping (UnsafeMutableRawPointer) -> LuaValue?,
    wrap: @escaping (LuaValue) -> UnsafeMutableRawPointer?
  ) {
    self.type = type
    self.unwrap = unwrap
    self.wrap = wrap
  }

  /// The values are written.
  func letGo() {
    if !held.isEmpty { held.removeAll() }
  }
}
