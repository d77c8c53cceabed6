internal import CFlowLua
internal import CLua

/// What a form of code says about the things in it that only the host knows.
package protocol LuaCodeDescriber: AnyObject {
  /// The value to be compared for an object of the host; nil when its type is all. It is asked once for
  /// each object, so an object may hold itself.
  func description(of object: AnyObject) throws -> LuaValue?
  /// Whether a module is a library of Lua or of the host: it stays the same while the state is open.
  func isLibrary(_ name: ByteString) -> Bool
  /// How the content of a module counts. A library counts by its name.
  func content(ofModule name: ByteString) throws -> LuaModuleContent
}

/// How the content of a module counts in a form of code.
package enum LuaModuleContent: Sendable {
  /// By the module's name alone, as a library of Lua.
  case name
  /// By the SHA-256 of its files, 32 bytes.
  case digest([UInt8])
  /// By its name, and that its file can't be read.
  case unreadable
  /// It has no file: values in it count as any other value.
  case values
}

extension LuaVM {
  /// A form of a function, or of any other value, that can be compared with one made by another process:
  /// equal bytes mean equal code.
  ///
  /// The form contains the function's bytecode without lines, names of locals and other debug
  /// information, the values of its upvalues, the functions among these and in tables, and the globals
  /// that have the names of its constants. Values that have no content to compare count by their type.
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
    let name = ByteString(Array(name))
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

/// A form of code that is being made.
final class CodeForming {
  let describer: any LuaCodeDescriber
  /// The descriptions of objects, until the form is complete.
  var held: [LuaReference] = []
  /// The describer's error.
  var error: (any Error)?

  init(_ describer: any LuaCodeDescriber) {
    self.describer = describer
  }
}
