internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Arguments of the functions for files.
extension Arguments {
  /// A path: a string that isn't empty and has no NUL in it.
  func path(_ index: Int) throws -> ByteString {
    guard let path = call.bytes(place(index)) else { throw wrong(index, expected: "path") }
    if path.isEmpty { throw wrong(index, "path expected, got an empty string") }
    if path.bytes.contains(0) {
      throw wrong(index, "path expected, got a string with a NUL byte: '\(path.escapingNUL)'")
    }
    return path
  }

  /// A table of options, which may be absent.
  func fileOptions(_ index: Int, known: [String]) throws -> Options {
    isNil(index) ? try Options(self, index, [], known) : try options(index, known: known)
  }
}

extension Options {
  /// A field that is one of some names; nil when it is absent.
  func choice<Choice>(
    _ name: ByteString, of choices: [(name: String, value: Choice)]
  ) throws -> Choice? {
    guard let text = try string(name) else { return nil }
    if let found = choices.first(where: { text == ByteString($0.name) }) { return found.value }
    let known = choices.map { "'\($0.name)'" }.joined(separator: ", ")
    throw arguments.wrong(index, "field '\(name)': one of \(known) expected, got '\(text)'")
  }
}
