internal import FlowEngine
@_spi(Scripting) internal import LuaVM

extension JSONReading {
  /// The options of `json.decode`, `json.read` and `json.lines`.
  static let fields = ["null", "max_depth", "big", "strict"]

  /// Reads an argument; the defaults if it is absent.
  init(_ arguments: Arguments, _ index: Int) throws {
    self.init()
    if arguments.isNil(index) { return }
    try self.init(arguments.options(index, known: Self.fields))
  }

  init(_ options: Options) throws {
    self.init()
    keepsNull = try options.choice("null", ["drop", "keep"]) == "keep"
    keepsBig = try options.choice("big", ["number", "string"]) == "string"
    isStrict = try options.boolean("strict") ?? false
    maxDepth = try options.depth() ?? maxDepth
  }
}

extension JSONWriting {
  private static let fields = [
    "empty", "invalid", "sort", "indent", "ascii", "secrets", "max_depth",
  ]

  /// Reads the options of `json.encode` and `json.write`; the defaults if they are absent.
  init(_ arguments: Arguments, _ index: Int) throws {
    self.init()
    if arguments.isNil(index) { return }
    let options = try arguments.options(index, known: Self.fields)
    emptyIsArray = try options.choice("empty", ["object", "array"]) == "array"
    replacesInvalid = try options.choice("invalid", ["error", "replace"]) == "replace"
    sortsKeys = try options.boolean("sort") ?? true
    let isIndent = { (number: Double) in number >= 0 && number <= 16 && number == number.rounded() }
    if let spaces = try options.number("indent", "an integer from 0 to 16", isIndent) {
      indent = Int(spaces)
    }
    isASCII = try options.boolean("ascii") ?? false
    showsSecrets = try options.boolean("secrets") ?? false
    maxDepth = try options.depth() ?? maxDepth
  }
}

extension Options {
  /// A field that is one of some strings.
  func choice(_ name: ByteString, _ known: [ByteString]) throws -> ByteString? {
    guard let text = try string(name) else { return nil }
    guard known.contains(text) else {
      let names = known.map { "'\($0)'" }.joined(separator: " or ")
      throw arguments.wrong(index, "field '\(name)': \(names) expected, got '\(text)'")
    }
    return text
  }

  /// The limit of the levels: Lua's stack has room for so many.
  fileprivate func depth() throws -> Int? {
    let isDepth = { (number: Double) in
      number >= 1 && number <= 100_000 && number == number.rounded()
    }
    return try number("max_depth", "an integer from 1 to 100000", isDepth).map { Int($0) }
  }
}
