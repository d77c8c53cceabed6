@_spi(Scripting) internal import LuaVM

/// Finds names for the cursor: of variables, fields, methods, options. No code of a script is run:
/// fields are found in tables and in the tables of `__index`, and annotations give the results of
/// functions of `flow`.
package struct NameCompletion {
  private let host: ScriptHost
  private let locals: SessionLocals?
  private let bytes: [UInt8]
  private let tokens: [LuaLexer.Token]
  private let reader = AnnotationReader()
  private var vm: LuaVM { host.vm }
  private static let limit = 1000

  /// - Parameters:
  ///   - host: The host with the variables.
  ///   - locals: The local variables of the session; nil: none.
  ///   - before: The chunk up to the cursor, which is in no string or comment.
  package init(_ host: ScriptHost, _ locals: SessionLocals?, before: [UInt8]) {
    self.host = host
    self.locals = locals
    bytes = before
    tokens = LuaLexer.tokens(before)
  }

  /// The known properties of an expression.
  private struct Found {
    var value: LuaValue?
    /// The name of such an object in messages.
    var className: String?
    /// For a function: the class that has it, and its name there.
    var member: (className: String, name: String)?
  }

  /// The names that begin with the text before the cursor.
  package func names() -> [[UInt8]] {
    var count = tokens.count
    var typed: [UInt8] = []
    if let last = tokens.last, last.range.upperBound == bytes.count,
      last.kind == .name || last.kind == .keyword
    {
      typed = Array(bytes[last.range])
      count -= 1
    }
    if count > 0, isSymbol(count - 1, ".") || isSymbol(count - 1, ":") {
      guard let object = expression(endingAt: count - 1) else { return [] }
      return members(of: object, typed, methodsOnly: isSymbol(count - 1, ":"))
    }
    let options = options(at: count).filter { $0.starts(with: typed) }
    if !options.isEmpty { return options }
    let keywords = LuaLexer.keywords.map { Array($0.utf8) }.filter { $0.starts(with: typed) }
    let variables = locals?.names(startingWith: typed, limit: Self.limit).map(\.bytes) ?? []
    guard let globals = try? vm.globals() else { return keywords + variables }
    let all = members(of: Found(value: .reference(globals)), typed, methodsOnly: false)
    return keywords + variables + all
  }

  // MARK: Tokens

  private func word(_ index: Int) -> String {
    guard tokens.indices.contains(index) else { return "" }
    return String(decoding: bytes[tokens[index].range], as: Unicode.ASCII.self)
  }

  private func isSymbol(_ index: Int, _ symbol: String) -> Bool {
    tokens.indices.contains(index) && tokens[index].kind == .symbol && word(index) == symbol
  }

  private func kind(_ index: Int) -> LuaLexer.Kind? {
    tokens.indices.contains(index) ? tokens[index].kind : nil
  }

  /// The bracket that matches a closing one.
  private func opening(of index: Int) -> Int? {
    var depth = 0
    for place in stride(from: index, through: 0, by: -1) {
      switch kind(place) == .symbol ? word(place) : "" {
      case ")", "]", "}": depth += 1
      case "(", "[", "{":
        depth -= 1
        if depth == 0 { return place }
      default: break
      }
    }
    return nil
  }

  /// The innermost open bracket before a token.
  private func enclosing(_ index: Int) -> Int? {
    var place = index - 1
    while place >= 0 {
      switch kind(place) == .symbol ? word(place) : "" {
      case ")", "]", "}":
        guard let open = opening(of: place) else { return nil }
        place = open
      case "(", "[", "{": return place
      default: break
      }
      place -= 1
    }
    return nil
  }

  /// Whether an expression may end before a token, so that an argument begins there.
  private func isCallee(before index: Int) -> Bool {
    kind(index - 1) == .name || kind(index - 1) == .string
      || [")", "]", "}"].contains { isSymbol(index - 1, $0) }
  }

  // MARK: Options

  /// The fields of the options at the cursor, where a name may be; fields that are already given
  /// are left out.
  private func options(at index: Int) -> [[UInt8]] {
    guard isSymbol(index - 1, "{") || isSymbol(index - 1, ",") || isSymbol(index - 1, ";"),
      let open = enclosing(index), let className = optionsClass(of: open)
    else { return [] }
    var given: Set<String> = []
    for place in open..<index where isSymbol(place + 1, "=") && enclosing(place) == open {
      given.insert(word(place))
    }
    return reader.members(of: className, methodsOnly: false).filter { !given.contains($0) }
      .map { Array($0.utf8) }
  }

  /// The class of the options in a table, by its bracket.
  private func optionsClass(of open: Int) -> String? {
    guard isSymbol(open, "{") else { return nil }
    if isSymbol(open - 1, "="), kind(open - 2) == .name, let outer = enclosing(open) {
      return optionsClass(of: outer).flatMap {
        reader.optionsClass(ofField: word(open - 2), in: $0)
      }
    }
    if isCallee(before: open) { return optionsClass(ofArgument: 0, calledBefore: open) }
    guard isSymbol(open - 1, "(") || isSymbol(open - 1, ","), let call = enclosing(open),
      isSymbol(call, "(")
    else {
      return nil
    }
    var arguments = 0
    for place in call..<open where isSymbol(place, ",") && enclosing(place) == call {
      arguments += 1
    }
    return optionsClass(ofArgument: arguments, calledBefore: call)
  }

  private func optionsClass(ofArgument index: Int, calledBefore end: Int) -> String? {
    guard let member = expression(endingAt: end)?.member else { return nil }
    return reader.optionsClass(
      ofArgument: index, of: member.name, in: member.className)
  }

  // MARK: Expressions

  /// The known properties of the expression that ends before a token.
  private func expression(endingAt end: Int) -> Found? {
    let last = end - 1
    switch kind(last) {
    case .name:
      let name = Array(bytes[tokens[last].range])
      if isSymbol(last - 1, ".") || isSymbol(last - 1, ":") {
        return expression(endingAt: last - 1).flatMap { field(.string(ByteString(name)), of: $0) }
      }
      return variable(ByteString(name))
    case .string:
      if isCallee(before: last) { return called(before: last) }
      return Found(value: .string(""))
    case .symbol:
      guard let open = opening(of: last) else { return nil }
      if isSymbol(last, "]") {
        guard isCallee(before: open), let key = constant(open + 1, last) else { return nil }
        return expression(endingAt: open).flatMap { field(key, of: $0) }
      }
      if isCallee(before: open) { return called(before: open) }
      // `("text")`, `(value)`.
      return isSymbol(last, ")") && open < last - 1 ? expression(endingAt: last) : nil
    default: return nil
    }
  }

  /// The result of a call whose arguments begin at a token.
  private func called(before end: Int) -> Found? {
    guard let function = expression(endingAt: end) else { return nil }
    // A called op is an op with arguments.
    if function.className == "op" { return Found(className: "op") }
    guard let member = function.member,
      let name = reader.resultClass(of: member.name, in: member.className)
    else { return nil }
    return Found(className: name)
  }

  private func variable(_ name: ByteString) -> Found? {
    if let value = locals?.value(of: name) { return found(value) }
    guard let globals = try? vm.globals() else { return nil }
    return field(.string(name), of: Found(value: .reference(globals)))
  }

  /// A value with its class.
  private func found(_ value: LuaValue) -> Found {
    var found = Found(value: value, className: host.className(of: value))
    if let function = host.function(in: value) { found.member = function }
    return found
  }

  private func field(_ key: LuaValue, of object: Found) -> Found? {
    if let value = object.value {
      for table in tables(of: value) {
        guard let value = try? vm.rawGet(key, in: table), !value.isNil else { continue }
        var found = found(value)
        if case .string(let name) = key, let className = object.className {
          found.member = (className, name.description)
        }
        return found
      }
    }
    guard case .string(let name) = key, let className = object.className else { return nil }
    if className == "ops", let op = host.registeredOp(name) { return found(op) }
    var found = Found(member: (className, name.description))
    if !reader.members(of: className, methodsOnly: true).contains(name.description) {
      found.className = reader.resultClass(of: name.description, in: className)
    }
    return found
  }

  /// `12`, `"key"`, `'key'` between two tokens.
  private func constant(_ start: Int, _ end: Int) -> LuaValue? {
    guard end == start + 1 else { return nil }
    if kind(start) == .number { return Int64(word(start)).map { .integer($0) } }
    let text = bytes[tokens[start].range]
    guard kind(start) == .string, text.first != UInt8(ascii: "[") else { return nil }
    return .string(ByteString(text.dropFirst().dropLast()))
  }

  // MARK: Members

  /// The names of fields with this prefix, those of `__index` tables included.
  private func members(of object: Found, _ typed: [UInt8], methodsOnly: Bool) -> [[UInt8]] {
    var found: [[UInt8]] = []
    guard let value = object.value else {
      return object.className.map {
        reader.members(of: $0, methodsOnly: methodsOnly).map { Array($0.utf8) }
          .filter { $0.starts(with: typed) }
      } ?? []
    }
    if let own = host.members(of: value, methodsOnly: methodsOnly) {
      found = own.map { Array($0.utf8) }.filter { $0.starts(with: typed) }
    }
    for table in tables(of: value) {
      let keys = (try? vm.stringKeys(of: table, startingWith: typed, limit: Self.limit)) ?? []
      for key in keys where LuaLexer.isName(key.bytes) {
        if methodsOnly {
          guard case .reference(let value)? = try? vm.rawGet(.string(key), in: table),
            value.kind == .function
          else { continue }
        }
        found.append(key.bytes)
      }
    }
    return found
  }

  /// The tables in which a field of a value is looked up, as long as no function has to be called.
  private func tables(of object: LuaValue) -> [LuaReference] {
    var found: [LuaReference] = []
    var next = object
    // Lua's own limit would take too long.
    for _ in 0..<50 {
      if case .reference(let table) = next, table.kind == .table { found.append(table) }
      guard let metatable = vm.metatable(of: next),
        case .reference(let index)? = try? vm.rawGet("__index", in: metatable),
        index.kind == .table
      else { break }
      next = .reference(index)
    }
    return found
  }
}
