internal import CFlowLua
internal import CLua
internal import Glibc

extension LuaVM {
  // MARK: Values

  /// Appends a value to a buffer. Tables are copied, cycles and sharing kept, without running
  /// metamethods; their metatables are written by the name of the module that holds them, or as
  /// that of errors. Throws an `EncodeError` that names a value that can't travel, such as a table
  /// with any other metatable; the buffer is then unchanged.
  package func encode(_ value: LuaValue, into buffer: EncodedBuffer) throws {
    try enter()
    try check(withRawValues(of: self, [value]) { flowlua_push_protected(state, $0) })
    defer { flowlua_pop(running, 1) }
    try encode(in: running, at: -1, into: buffer)
  }

  /// The same for the value at an index of a stack.
  func encode(in lua: OpaquePointer, at index: Int32, into buffer: EncodedBuffer) throws {
    var error = flowlua_encode_error()
    let status = flowlua_encode(state, lua, index, &buffer.raw, &error)
    if status != LUA_OK { try finishEncoding(status, &error, isCode: false) }
  }

  /// The value at an offset of a buffer, and the offset of the next value. Throws a `LuaError` of
  /// code `argument` for bytes that weren't encoded by this class.
  package func decode(
    _ buffer: EncodedBuffer, at offset: Int = 0
  ) throws -> (value: LuaValue, end: Int) {
    try enter()
    let raw = buffer.raw
    guard let bytes = raw.bytes, offset >= 0, offset <= raw.count else {
      throw LuaError(.argument, ByteString("there is no encoded value at byte \(offset)"))
    }
    var used = 0
    var problem: UnsafePointer<CChar>?
    let lua = running
    let status = flowlua_decode(
      state, lua, bytes + offset, raw.count - offset, 1, &used, &problem)
    try finishDecoding(status, problem, at: offset + used)
    return (try popValue(lua), offset + used)
  }

  func finishEncoding(
    _ status: Int32, _ error: inout flowlua_encode_error, isCode: Bool
  ) throws {
    secrets?.releaseValues()
    if status == Int32(FLOWLUA_NOT_ENCODED) { throw EncodeError(&error, isCode: isCode) }
    try check(status)
  }

  func finishDecoding(
    _ status: Int32, _ problem: UnsafePointer<CChar>?, at offset: Int
  ) throws {
    if status == Int32(FLOWLUA_MALFORMED) {
      let reason = problem.map { String(cString: $0) } ?? ""
      throw LuaError(.argument, ByteString("can't decode a value: \(reason) (at byte \(offset))"))
    }
    try check(status)
  }

  // MARK: Secrets

  /// Sets the type of objects that travel as a mark around a value, and arrive as objects again.
  ///
  /// - Parameters:
  ///   - type: The type of such objects.
  ///   - unwrap: The value inside; nil if it can't travel.
  ///   - wrap: An object with a value inside; nil if there is none.
  package func setSecretType<Object: AnyObject>(
    _ type: LuaObjectType<Object>, unwrap: @escaping (Object) -> LuaValue?,
    wrap: @escaping (LuaValue) -> Object?
  ) {
    checkOwner()
    secrets = SecretCoding(
      type: type.id,
      unwrap: { pointer in
        unwrap(Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue())
      },
      wrap: { value in wrap(value).map { Unmanaged.passRetained($0).toOpaque() } })
    flowlua_set_secret_type(state, type.id)
  }

  func takeOut(
    of object: UnsafeMutableRawPointer, into raw: inout flowlua_value
  ) -> Bool {
    guard let secrets, let value = secrets.unwrap(object) else { return false }
    if case .string(let string) = value {
      let count = string.bytes.count
      guard let bytes = flowlua_resize_own(nil, max(count, 1)) else { return false }
      UnsafeMutableRawBufferPointer(start: bytes, count: count).copyBytes(from: string.bytes)
      raw = flowlua_value(
        kind: Int32(FLOWLUA_STRING), reference: 1, integer: Int64(count), number: 0,
        pointer: UnsafeRawPointer(bytes))
      return true
    }
    if case .reference(let reference) = value {
      guard reference.vm === self else { return false }
      secrets.held.append(reference)
    }
    guard let plain = flowlua_value(value, of: self) else { return false }
    raw = plain
    return true
  }

  func mark(_ raw: inout flowlua_value) -> Bool {
    let value: LuaValue =
      switch Int(raw.kind) {
      case FLOWLUA_STRING:
        .string(
          copiedText(UnsafeRawBufferPointer(start: raw.pointer, count: Int(raw.integer))))
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
final class SecretCoding {
  let type: Int32
  let unwrap: (UnsafeMutableRawPointer) -> LuaValue?
  let wrap: (LuaValue) -> UnsafeMutableRawPointer?
  /// Values that were taken out of secrets and haven't been written yet.
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
  func releaseValues() {
    if !held.isEmpty { held.removeAll() }
  }
}
