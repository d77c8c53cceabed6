internal import CFlowLua
internal import CLua

/// A value that can't travel to another state, and where it was found.
package struct EncodeError: Error, Sendable, CustomStringConvertible {
  /// The basic type of the value.
  package let kind: LuaKind
  /// Its name in messages: `__name` of its metatable, `file`, or the basic type's name.
  package let typeName: String
  /// The path to it from the encoded value, or from the upvalue: `[3].handle`; empty for the value
  /// itself.
  package let path: String
  /// Whether it is a key of the table at `path`.
  package let isKey: Bool
  /// For code: the upvalue in which it was found; nil for a value.
  package let upvalue: String?
  /// For code: where the function with that upvalue was defined, `file:line`.
  package let function: String?

  /// Whether it was found in a function, not in a value.
  package let isCode: Bool

  init(_ raw: inout flowlua_encode_error, isCode: Bool) {
    self.isCode = isCode
    kind = LuaKind(rawValue: raw.type) ?? .none
    typeName = text(&raw.type_name)
    path = text(&raw.path)
    isKey = raw.is_key
    let upvalue = text(&raw.upvalue)
    let function = text(&raw.function)
    self.upvalue = upvalue.isEmpty ? nil : upvalue
    self.function = function.isEmpty ? nil : function
  }

  /// Its description with an article, and the reason where the type doesn't make it obvious.
  package var noun: String { thing + reason }

  private var reason: String { kind == .table ? " whose metatable no module holds" : "" }

  private var thing: String {
    switch kind {
    case .function: isCode ? "a C function" : "a function"
    case .thread: "a coroutine"
    case .lightUserdata: "a light userdata"
    case .userdata: typeName == "userdata" ? "a userdata" : "a userdata (\(typeName))"
    case .table: typeName == "table" ? "a table" : "a table (\(typeName))"
    default: "a \(typeName)"
    }
  }

  /// The advice for the script's author.
  package var advice: String {
    switch kind {
    case .function: "require its module inside the function"
    case .userdata where typeName == "file": "open it inside the function"
    case .table: "keep the metatable in a module, or make it inside the function"
    default: "make it inside the function"
    }
  }

  /// The message, with the name of the encoded value: `images[3].handle is a function: …`.
  package func description(of root: String) -> String {
    guard let upvalue, let function else {
      let place = root + path
      if isCode { return "\(noun) can't go to a worker; \(advice)" }
      if place.isEmpty { return "\(noun) can't go to or from a worker" }
      return "\(isKey ? "a key of " : "")\(place) is \(noun): it can't go to or from a worker"
    }
    let owner = "upvalue '\(upvalue)' of function at \(function)"
    let what =
      path.isEmpty && !isKey
      ? "is \(noun)"
      : "has \(thing) \(isKey ? "as a key of" : "at") \(upvalue)\(path)\(reason)"
    return "\(owner) \(what): it can't go to a worker; \(advice)"
  }

  /// The message.
  package var description: String { description(of: "") }
}

/// An upvalue whose value has changed since its function was packed.
package struct UpvalueChange: Sendable, Equatable {
  /// Its name; `?` without debug information.
  package let upvalue: String
  /// Where its function was defined, `file:line`.
  package let function: String

  init(_ raw: inout flowlua_encode_error) {
    upvalue = text(&raw.upvalue)
    function = text(&raw.function)
  }
}

/// The text in an array of C characters.
private func text<Characters>(_ characters: inout Characters) -> String {
  withUnsafeBytes(of: &characters) { bytes in
    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)  // swift-format-ignore
  }
}
