internal import CFlowLua
internal import CLua
package import FlowBytes

extension LuaVM {
  /// A form of a function, or of any other value, that can be compared with one made by another process:
  /// equal bytes mean equal code.
  ///
  /// The form contains the function's bytecode without lines, names of locals and other debug
  /// information. It also contains the values of its upvalues, the functions among these and in tables,
  /// and the globals that have the names of its constants. Values that have no content to compare count by their type.
  /// The bytes contain the text of secrets: they are for hashing only.
  ///
  /// - Parameters:
  ///   - value: A function, a table or an object.
  ///   - arguments: A table of arguments that are bound to the function.
  ///   - describer: Knows objects and modules.
  /// - Returns: The bytes.
  /// - Throws: An error of the describer, or a `LuaError` when memory runs out.
  package func codeForm(
    of value: LuaReference, arguments: LuaReference? = nil, describer: any LuaCodeDescriber
  ) throws -> [UInt8] {
    try makeForm(of: value, arguments, describer, parts: nil)
  }

  /// The parts of a form, each after the one that refers to it; those of a very large form not to its end.
  ///
  /// - Parameters: As for `codeForm`, which also says what is thrown.
  package func codeParts(
    of value: LuaReference, arguments: LuaReference? = nil, describer: any LuaCodeDescriber
  ) throws -> [LuaCodePart] {
    let listed = EncodedBuffer()
    let form = try makeForm(of: value, arguments, describer, parts: listed)
    return form.withUnsafeBytes { form in
      listed.withUnsafeBytes { LuaCodePart.list(in: $0, of: form) }
    }
  }

  private func makeForm(
    of value: LuaReference, _ arguments: LuaReference?, _ describer: any LuaCodeDescriber,
    parts: EncodedBuffer?
  ) throws -> [UInt8] {
    try enter()
    checkHome(value)
    if let arguments { checkHome(arguments) }
    let run = CodeForming(describer)
    // The describer may make forms of its own.
    let outer = forming
    forming = run
    defer {
      forming = outer
      if outer == nil { secrets?.releaseValues() }
    }
    let buffer = EncodedBuffer()
    let status =
      if let parts {
        flowlua_code_form(state, value.id, arguments?.id ?? 0, &buffer.raw, &parts.raw)
      } else {
        flowlua_code_form(state, value.id, arguments?.id ?? 0, &buffer.raw, nil)
      }
    if let error = run.error {
      if status != LUA_OK { flowlua_pop(running, 1) }
      throw error
    }
    try check(status)
    return buffer.bytes
  }

  func describe(_ object: UnsafeMutableRawPointer, into raw: inout flowlua_value) -> Int32 {
    guard let forming else { return 0 }
    do {
      let object = Unmanaged<AnyObject>.fromOpaque(object).takeUnretainedValue()
      guard case .reference(let reference)? = try forming.describer.description(of: object) else {
        return 0
      }
      checkHome(reference)
      // Alive until its bytes are written.
      forming.held.append(reference)
      guard let plain = flowlua_value(.reference(reference), of: self) else { return 0 }
      raw = plain
      return 1
    } catch {
      forming.error = error
      return -1
    }
  }

  func describeModule(
    _ name: UnsafeRawBufferPointer, _ digest: UnsafeMutablePointer<UInt8>?
  ) -> Int32 {
    guard let forming else { return Int32(FLOWLUA_MODULE_NAMED) }
    let name = ByteString(name)
    guard let digest else {
      let isLibrary = forming.describer.isLibrary(name)
      return Int32(isLibrary ? FLOWLUA_MODULE_NAMED : FLOWLUA_MODULE_UNKNOWN)
    }
    do {
      switch try forming.describer.content(ofModule: name) {
      case .name: return Int32(FLOWLUA_MODULE_NAMED)
      case .digest(let bytes):
        for (index, byte) in bytes.prefix(Int(FLOWLUA_MODULE_DIGEST)).enumerated() {
          digest[index] = byte
        }
        return Int32(FLOWLUA_MODULE_DIGESTED)
      case .unreadable: return Int32(FLOWLUA_MODULE_UNREADABLE)
      case .values: return Int32(FLOWLUA_MODULE_UNKNOWN)
      }
    } catch {
      forming.error = error
      return Int32(FLOWLUA_MODULE_FAILED)
    }
  }
}

/// Something that a form of code contains, and how it is reached.
package struct LuaCodePart {
  /// How the owner refers to it.
  package enum Way: Int32 {
    case root = 0
    /// The table of arguments.
    case arguments
    /// An upvalue, by its name.
    case local
    case global
    /// The field of a table, by the step to it: `.name`, `[3]`.
    case field
    /// A module that a function may require, by its name.
    case module
    /// It is what the owner itself is or holds.
    case content
  }

  package enum Value {
    case `nil`
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    /// A function that is new there, with its bytecode.
    case function([UInt8])
    /// A table that is new there.
    case table
    /// An object of the host that is new there.
    case object
    /// A module, or a field of one: its name, and the bytes to compare, with the digest of its content.
    case module(ByteString, [UInt8])
    /// Other bytes to compare.
    case bytes([UInt8])
    /// A table, function or object that was there before.
    case known
  }

  package let way: Way
  /// The number of the table, function or object that refers to it; nil for none.
  package let owner: Int?
  /// Its own number, if it is a table, function or object that is new there.
  package let number: Int?
  package let name: ByteString
  package let value: Value

  /// The parts in the list that a form was made with.
  static func list(in bytes: UnsafeRawBufferPointer, of form: UnsafeRawBufferPointer) -> [Self] {
    var parts: [Self] = []
    var at = 0
    while at + MemoryLayout<flowlua_code_part>.size <= bytes.count {
      let raw = bytes.loadUnaligned(fromByteOffset: at, as: flowlua_code_part.self)
      at += MemoryLayout<flowlua_code_part>.size
      let end = at + Int(raw.name)
      guard let way = Way(rawValue: raw.kind), end <= bytes.count, raw.start <= raw.end,
        raw.end <= UInt64(form.count)
      else { return parts }
      let value = UnsafeRawBufferPointer(rebasing: form[Int(raw.start)..<Int(raw.end)])
      parts.append(
        Self(
          way: way, owner: raw.owner < 0 ? nil : Int(raw.owner),
          number: raw.child < 0 ? nil : Int(raw.child), name: ByteString(bytes[at..<end]),
          value: Value(value)))
      at = end
    }
    return parts
  }
}

extension LuaCodePart.Value {
  /// Reads the bytes of a part: a tag (codec.h), and what follows it.
  fileprivate init(_ bytes: UnsafeRawBufferPointer) {
    let all = Array(bytes)
    switch bytes.first {
    case 0 where bytes.count == 1: self = .nil
    case 1 where bytes.count == 1: self = .boolean(false)
    case 2 where bytes.count == 1: self = .boolean(true)
    case 3 where bytes.count == 9:
      self = .integer(bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self))
    case 4 where bytes.count == 9:
      self = .number(bytes.loadUnaligned(fromByteOffset: 1, as: Double.self))
    case 9 where bytes.count > 5: self = .function(Array(all[5...]))
    case 10, 11:
      // After the tag comes the length of the name, 7 bits a byte.
      let size = all.dropFirst().prefix { $0 >= 0x80 }.count + 1
      let count = all[1...].prefix(size).reversed().reduce(0) { $0 << 7 | Int($1 & 0x7F) }
      self = .module(ByteString(all.dropFirst(1 + size).prefix(count)), all)
    case 6, 12: self = .known
    case 7, 13, 0x47, 0x87: self = .table
    case 16: self = .object
    default: self = .bytes(all)
    }
  }
}
