public import FlowEngine
@_spi(Scripting) package import LuaVM

/// The arguments with which a script called an `OpClass`, counted from 1.
///
/// These functions throw an error of use that names the class, the argument, the expected and the
/// given value, and the line of the script: pass it on. Valid during the call only.
///
/// ```swift
/// let greet = OpClass("GreetOp", doc: "Greets.") { arguments in
///   let name = try arguments.string(1)
///   return Op("GreetOp") { context in context.log("hello, \(name)") }
/// }
/// ```
public struct OpArguments {
  private let arguments: Arguments
  /// The arguments for code of this module.
  var plain: Arguments { arguments }

  init(_ arguments: Arguments) {
    self.arguments = arguments
  }

  /// The number of arguments.
  public var count: Int { arguments.count }

  /// Whether an argument is absent or nil.
  package func isNil(_ index: Int) -> Bool { arguments.isNil(index) }

  /// The error of a wrong argument: `bad argument #1 to 'GreetOp' (what)`.
  ///
  /// - Parameters:
  ///   - index: The index of the argument.
  ///   - what: The description of the mistake.
  /// - Returns: An error to throw.
  public func wrong(_ index: Int, _ what: some FlowText) -> any Error {
    arguments.wrong(index, what.byteString)
  }

  /// As above, with `what` in the form `string expected, got nil`.
  package func wrong(_ index: Int, expected: some FlowText) -> any Error {
    arguments.wrong(index, expected: expected.byteString)
  }

  /// An argument of any type, as the data bucket stores it.
  public func value(_ index: Int) throws -> FlowValue {
    FlowValue(try arguments.call.value(arguments.place(index)))
  }

  /// An argument as anything `Decodable`, such as a table as a structure. A float with an integral value is an integer, too,
  /// as everywhere in Lua.
  ///
  /// - Throws: An error of use that names the path of the part that is wrong, and what was expected.
  public func value<Content: Decodable>(
    _ index: Int, as type: Content.Type = Content.self
  ) throws -> Content {
    do {
      var value = try value(index)
      if type is any BinaryInteger.Type, case .number(let number) = value {
        value = Int64(exactly: number).map { .integer($0) } ?? value
      }
      return try value.decoded(as: type)
    } catch {
      throw wrong(index, FlowError.from(error).message)
    }
  }

  /// A string in UTF-8; an error of use for other bytes.
  public func string(_ index: Int) throws -> String { try utf8(arguments.string(index), index) }

  /// A string of any bytes.
  package func bytes(_ index: Int) throws -> ByteString { try arguments.string(index) }

  private func utf8(_ bytes: ByteString, _ index: Int) throws -> String {
    guard let text = String(flowValue: .bytes(bytes)) else {
      throw wrong(index, "\(String.flowWantedName) expected")
    }
    return text
  }

  /// A string of any bytes, or a number as `tostring` shows it.
  package func text(_ index: Int) throws -> ByteString {
    switch try value(index) {
    case .bytes(let bytes): return bytes
    case .integer(let integer): return FlowValue.integer(integer).logText
    case .number(let number): return FlowValue.number(number).logText
    default: throw wrong(index, expected: "string")
    }
  }

  /// A boolean.
  package func boolean(_ index: Int) throws -> Bool {
    guard let flag = arguments.call.boolean(arguments.place(index)) else {
      throw wrong(index, expected: "boolean")
    }
    return flag
  }

  /// An integer; a float with an integral value is accepted, as everywhere in Lua.
  package func integer(_ index: Int) throws -> Int64 {
    let place = arguments.place(index)
    if let integer = arguments.call.integer(place) { return integer }
    guard let number = arguments.call.number(place) else {
      throw wrong(index, expected: "integer")
    }
    guard let integer = Int64(exactly: number) else {
      throw wrong(index, "integer expected, got \(FlowValue.number(number).logText)")
    }
    return integer
  }

  /// A number of either subtype.
  package func number(_ index: Int) throws -> Double {
    guard let number = arguments.call.number(arguments.place(index)) else {
      throw wrong(index, expected: "number")
    }
    return number
  }

  /// A number of seconds, finite and not negative.
  public func duration(_ index: Int) throws -> Duration { try arguments.duration(index) }

  /// A list of strings of any bytes without holes; a number in it is converted as by `tostring`.
  package func strings(_ index: Int) throws -> [ByteString] {
    var line: [ByteString] = []
    while case let place = arguments.place(index + line.count),
      arguments.call.kind(place) == .string, let word = arguments.call.bytes(place)
    { line.append(word) }
    if let first = line.first {
      let all = line.dropFirst().reduce(first) { "\($0) \($1)" }
      throw wrong(index, "table expected, got string\(ProcessRequest.hint(forCommandLine: all))")
    }
    let list = try arguments.table(index)
    guard let strings = try arguments.host.strings(in: .reference(list)) else {
      throw wrong(
        index, "a list of strings expected, got \(try arguments.host.problem(ofStringsIn: list))")
    }
    return strings
  }

  /// A table of options; empty if the argument is absent.
  ///
  /// - Parameters:
  ///   - index: The index of the argument.
  ///   - known: The names of its fields; another field is an error.
  /// - Returns: The options.
  /// - Throws: An error of use when it is no table, or a field isn't known.
  public func options(_ index: Int, known: [String]) throws -> OpOptions {
    if arguments.isNil(index) { return OpOptions(try Options(arguments, index, [], known)) }
    return OpOptions(try arguments.options(index, known: known))
  }
}

/// A table of options passed to an `OpClass`. A field of another type is an error of use.
///
/// ```swift
/// let resize = OpClass("ResizeOp", doc: "Resizes an image.") { arguments in
///   let width = try arguments.options(1, known: ["width"]).value("width") ?? 640
///   return Op("ResizeOp") { context in context.set("width", width) }
/// }
/// ```
public struct OpOptions {
  private let options: Options

  init(_ options: Options) {
    self.options = options
  }

  /// The error of a wrong field: `bad argument #2 to 'ExecOp' (field 'cwd': what)`.
  public func wrong(_ name: some FlowText, _ what: some FlowText) -> any Error {
    options.arguments.wrong(options.index, "field '\(name.byteString)': \(what.byteString)")
  }

  /// A field of any type; nil when it is absent.
  public func value(_ name: some FlowText) -> FlowValue? { luaValue(name).map { FlowValue($0) } }

  /// A field of any type, as Lua has it.
  package func luaValue(_ name: some FlowText) -> LuaValue? { options.value(name.byteString) }

  /// A field that is a string in UTF-8; nil when it is absent.
  public func string(_ name: some FlowText) throws -> String? {
    try bytes(name).map { bytes in
      guard let text = String(flowValue: .bytes(bytes)) else {
        throw wrong(name, "\(String.flowWantedName) expected")
      }
      return text
    }
  }

  /// A field that is a string of any bytes; nil when it is absent.
  package func bytes(_ name: some FlowText) throws -> ByteString? {
    try options.string(name.byteString)
  }

  /// A field that is a boolean; nil when it is absent.
  public func boolean(_ name: some FlowText) throws -> Bool? {
    try options.boolean(name.byteString)
  }

  /// A field that is a finite number of seconds, greater than 0 or, if that is allowed, 0; nil when it
  /// is absent.
  public func duration(_ name: some FlowText, orZero: Bool = true) throws -> Duration? {
    try options.duration(name.byteString, orZero: orZero)
  }

  /// A field that is a table of options; nil when it is absent.
  package func table(_ name: some FlowText, known: [String]) throws -> OpOptions? {
    guard let table = try options.table(name.byteString) else { return nil }
    let pairs = try options.arguments.host.vm.pairs(of: table)
    return OpOptions(
      try Options(
        options.arguments, options.index, pairs, known, of: name.byteString.description))
  }

  /// The fields of a table with string keys, in the order of the keys; nil when it is absent.
  package func fields(_ name: some FlowText) throws -> [(name: ByteString, value: FlowValue)]? {
    try luaFields(name)?.map { ($0.name, FlowValue($0.value)) }
  }

  /// The fields as Lua has them.
  package func luaFields(_ name: some FlowText) throws -> [(name: ByteString, value: LuaValue)]? {
    guard let table = try options.table(name.byteString) else { return nil }
    let vm = options.arguments.host.vm
    return try vm.pairs(of: table).map { key, value in
      guard case .string(let key) = key else {
        throw wrong(name, "names are strings, got a key of type \(vm.typeName(of: key))")
      }
      return (key, value)
    }.sorted { $0.0 < $1.0 }
  }
}
