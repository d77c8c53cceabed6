package import FlowEngine
@_spi(Scripting) package import LuaVM

/// The arguments of one API function. Its error messages name the function and the argument.
package struct Arguments {
  let host: ScriptHost
  let call: LuaCall
  let function: String
  /// 1 for methods, whose `self` doesn't count in messages.
  let selfCount: Int

  /// The arguments of a plain function.
  package init(_ host: ScriptHost, _ call: LuaCall, _ function: String) {
    self.host = host
    self.call = call
    self.function = function
    selfCount = 0
  }

  /// The arguments of a method.
  package init(_ host: ScriptHost, _ call: LuaCall, method function: String) {
    self.host = host
    self.call = call
    self.function = function
    selfCount = 1
  }

  /// The arguments after `hidden` ones, which the script doesn't see.
  package init(_ host: ScriptHost, _ call: LuaCall, _ function: String, hidden: Int) {
    self.host = host
    self.call = call
    self.function = function
    selfCount = hidden
  }

  /// The number of arguments, without `self`.
  var count: Int { max(0, call.count - selfCount) }

  /// The position of argument `index` in the call.
  func place(_ index: Int) -> Int { index + selfCount }

  func isNil(_ index: Int) -> Bool { call.isNil(place(index)) }

  func got(_ index: Int) -> String { host.shownType(call, place(index)) }

  /// `bad argument #1 to 'add' (op expected, got nil)`.
  package func wrong(_ index: Int, _ what: ByteString) -> any Error {
    host.usage(call, "bad argument #\(index) to '\(function)' (\(what))")
  }

  package func wrong(_ index: Int, expected: ByteString) -> any Error {
    wrong(index, "\(expected) expected, got \(got(index))")
  }

  /// `bad self` for a method called on a value of another type.
  func wrongSelf(_ type: String) -> any Error {
    let types = type.split { $0 == " " }.filter { $0 != "or" }
    let right = types.map { "\($0):\(function)" }.joined(separator: " or ")
    let hint = function.hasPrefix("__") ? "" : ": write \(right)"
    return host.usage(
      call,
      "calling '\(function)' on bad self (\(type) expected, got \(host.shownType(call, 1)))\(hint)")
  }

  package func string(_ index: Int) throws -> ByteString {
    guard let string = call.bytes(place(index)) else { throw wrong(index, expected: "string") }
    return string
  }

  func name(_ index: Int) throws -> ByteString {
    let name = try string(index)
    if name.isEmpty { throw wrong(index, "a name is a non-empty string") }
    return name
  }

  /// A number of seconds: finite and not negative.
  package func duration(_ index: Int) throws -> Duration {
    Duration(clampingSeconds: try seconds(index))
  }

  func seconds(_ index: Int) throws -> Double {
    try amount(index, expected: "a finite number of seconds")
  }

  /// A finite number that isn't negative; `expected` is what an error asks for.
  func amount(_ index: Int, expected: ByteString = "a finite number") throws -> Double {
    guard let number = call.number(place(index)) else {
      throw wrong(index, expected: "number")
    }
    guard number.isFinite, number >= 0 else {
      let got = FlowValue(try call.value(place(index))).logText
      throw wrong(index, "\(expected), at least 0, expected, got \(got)")
    }
    return number
  }

  /// An integer of at least 1, also as a float; `expected` is what an error asks for.
  func count(_ index: Int, expected: ByteString) throws -> Int {
    guard call.kind(place(index)) == .number else { throw wrong(index, expected: expected) }
    let value = try call.value(place(index))
    guard let count = value.count(atLeast: 1) else {
      throw wrong(index, "\(expected) expected, got \(FlowValue(value).logText)")
    }
    return count
  }

  func function(_ index: Int) throws -> LuaReference {
    guard call.kind(place(index)) == .function,
      case .reference(let function) = try call.value(place(index))
    else { throw wrong(index, expected: "function") }
    return function
  }

  func table(_ index: Int, expected: ByteString = "table") throws -> LuaReference {
    guard call.kind(place(index)) == .table,
      case .reference(let table) = try call.value(place(index))
    else { throw wrong(index, expected: expected) }
    return table
  }

  /// An op: an op class, an op with arguments, or a flow.
  func op(_ index: Int) throws -> Op {
    if let op = host.op(call, place(index)) {
      if let complaint = op.complaintOfClass { throw wrong(index, complaint) }
      return op
    }
    if call.kind(place(index)) == .function {
      throw wrong(index, "op expected, got function; make one with flow.op(name, function)")
    }
    throw wrong(index, expected: "op")
  }

  /// Initial data: a table with string keys, in the order of its sorted keys.
  func data(_ index: Int) throws -> [(ByteString, FlowValue)] {
    isNil(index) ? [] : try host.data(in: try table(index)) { wrong(index, $0) }
  }

  package func options(_ index: Int, known: [String]) throws -> Options {
    try Options(self, index, try host.vm.pairs(of: try table(index)), known)
  }
}

/// A table of options. An unknown field, or one of a wrong type, is an error.
package struct Options {
  let arguments: Arguments
  let index: Int
  private var fields: [ByteString: LuaValue] = [:]
  /// The prefix for a table in a field: `retry.`.
  private let prefix: String

  /// Reads a table; `parent` is the field that has it, nil for the argument itself.
  package init(
    _ arguments: Arguments, _ index: Int, _ pairs: [(key: LuaValue, value: LuaValue)],
    _ known: [String], of parent: String? = nil
  ) throws {
    self.arguments = arguments
    self.index = index
    prefix = parent.map { "\($0)." } ?? ""
    for (key, value) in pairs {
      guard case .string(let name) = key else {
        let place: ByteString = parent.map { "field '\($0)': " } ?? ""
        throw arguments.wrong(
          index,
          "\(place)fields are named by strings, got a key of type \(arguments.host.vm.typeName(of: key))"
        )
      }
      guard known.contains(where: { name == $0 }) else {
        if let meant = NearestName.of(name, in: known) {
          throw arguments.wrong(
            index, "unknown field '\(prefix)\(name)' (did you mean '\(meant)'?)")
        }
        let known = known.sorted().map { "'\($0)'" as ByteString }.joined(separator: ", ")
        throw arguments.wrong(index, "unknown field '\(prefix)\(name)'; known are \(known)")
      }
      fields[name] = value
    }
  }

  func has(_ name: ByteString) -> Bool { fields[name] != nil }

  /// The fields that are there.
  var all: [(ByteString, LuaValue)] { fields.map { ($0.key, $0.value) } }

  /// The options with those of another table for the fields that are absent.
  func adding(_ defaults: Options?) -> Options {
    guard let defaults else { return self }
    var all = self
    all.fields.merge(defaults.fields) { own, _ in own }
    return all
  }

  /// The options without some fields.
  func without(_ names: [ByteString]) -> Options {
    var rest = self
    for name in names { rest.fields[name] = nil }
    return rest
  }

  /// A field of any type.
  package func value(_ name: ByteString) -> LuaValue? { fields[name] }

  /// `bad argument #2 to 'op' (field 'retry.delay': problem)`.
  func wrong(_ name: ByteString, _ problem: ByteString) -> any Error {
    arguments.wrong(index, "field '\(prefix)\(name)': \(problem)")
  }

  package func wrong(_ name: ByteString, expected: ByteString) -> any Error {
    let got = fields[name].map { arguments.host.kindName(of: $0) } ?? "nil"
    return wrong(name, "\(expected) expected, got \(got)")
  }

  /// The kind of a field's value; nil if it is missing or has no identity.
  func kind(_ name: ByteString) -> LuaKind? {
    guard let value = fields[name] else { return nil }
    guard case .reference(let reference) = value else { return .number }
    return reference.kind
  }

  /// A number that `isValid` accepts.
  func number(
    _ name: ByteString, _ expected: ByteString, _ isValid: (Double) -> Bool
  ) throws -> Double? {
    guard let value = fields[name] else { return nil }
    let number: Double
    switch value {
    case .integer(let integer): number = Double(integer)
    case .number(let float): number = float
    default: throw wrong(name, expected: "number")
    }
    guard isValid(number) else {
      throw wrong(name, "\(expected) expected, got \(FlowValue(value).logText)")
    }
    return number
  }

  /// A finite number of seconds, greater than 0 or, if that is allowed, 0.
  package func duration(_ name: ByteString, orZero: Bool) throws -> Duration? {
    let least = orZero ? "at least 0," : "greater than 0,"
    let seconds = try number(name, "a finite number of seconds, \(least)") {
      $0.isFinite && (orZero ? $0 >= 0 : $0 > 0)
    }
    return seconds.map { Duration(clampingSeconds: $0) }
  }

  package func string(_ name: ByteString) throws -> ByteString? {
    guard let value = fields[name] else { return nil }
    guard case .string(let string) = value else { throw wrong(name, expected: "string") }
    return string
  }

  package func boolean(_ name: ByteString) throws -> Bool? {
    guard let value = fields[name] else { return nil }
    guard case .boolean(let flag) = value else { throw wrong(name, expected: "boolean") }
    return flag
  }

  /// An integer from 1 on; a float with an integral value is accepted, as everywhere in Lua.
  func count(_ name: ByteString, least: Int = 1, expected: ByteString? = nil) throws -> Int? {
    let expected = expected ?? "integer of at least \(least)"
    guard let value = fields[name] else { return nil }
    switch value {
    case .integer, .number: break
    default: throw wrong(name, expected: expected)
    }
    guard let count = value.count(atLeast: least) else {
      throw wrong(name, "\(expected) expected, got \(FlowValue(value).logText)")
    }
    return count
  }

  func function(_ name: ByteString) throws -> LuaReference? {
    guard let value = fields[name] else { return nil }
    guard case .reference(let function) = value, function.kind == .function else {
      throw wrong(name, expected: "function")
    }
    return function
  }

  func table(_ name: ByteString) throws -> LuaReference? {
    guard let value = fields[name] else { return nil }
    guard case .reference(let table) = value, table.kind == .table else {
      throw wrong(name, expected: "table")
    }
    return table
  }
}

extension Options {
  /// A limit of starts: a number per second, or `{ n, per = seconds }`.
  func rate(_ name: ByteString) throws -> RateLimit? {
    let expected: ByteString = "integer of at least 1, or { n, per = seconds },"
    switch kind(name) {
    case nil: return nil
    case .table?: break
    default: return try count(name, expected: expected).map { RateLimit($0) }
    }
    guard let table = try table(name) else { return nil }
    var pairs = try arguments.host.vm.pairs(of: table)
    // The number is at the index 1: a field of that name gives it the same messages.
    let first = pairs.firstIndex { pair in
      if case .integer(1) = pair.key { true } else { false }
    }
    guard let first else {
      throw arguments.wrong(
        self.index, "field '\(name)': \(expected) expected, got a table without a number at index 1"
      )
    }
    pairs[first].key = .string("1")
    let fields = try Options(arguments, index, pairs, ["1", "per"], of: name.description)
    let count = try fields.count("1") ?? 1
    return RateLimit(count, per: try fields.duration("per", orZero: false) ?? .seconds(1))
  }
}

extension LuaValue {
  /// The number, if it is an integer of at least `least`, also as a float.
  fileprivate func count(atLeast least: Int) -> Int? {
    let integer: Int64? =
      switch self {
      case .integer(let exact): exact
      case .number(let number): Int64(exactly: number)
      default: nil
      }
    return integer.flatMap { $0 >= least ? Int(exactly: $0) : nil }
  }
}
