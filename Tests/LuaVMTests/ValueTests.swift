@_spi(Scripting) import LuaVM
import Testing

/// Values keep their bits, subtypes and identity on every way.
@Suite("Conversion and printing of values")
struct ValueTests {
  @Test("A value is printed as it is written, one with an identity by its type")
  func printing() throws {
    let vm = try LuaVM()
    defer { vm.close() }
    let values = try vm.call(
      vm.load("return nil, true, 42, 1.5, 'a\\n\"b\"', {}, print", name: "x"))
    #expect("\(values)" == #"[nil, true, 42, 1.5, "a\n\"b\"", table, function]"#)
  }

  @Test("Lists of strings of all short lengths keep their values", arguments: [1, 64, 65, 200])
  func listsOfShortStrings(count: Int) throws {
    let host = try TestHost()
    let value: (Int) -> LuaValue = { index in
      let digits = String(index)
      return .string(ByteString(digits + String(repeating: "-", count: index % 41)))
    }
    let list = try host.vm.makeList(count: count, value)
    for index in 0..<count {
      #expect(try host.vm.element(index + 1, of: list) == value(index))
    }
    #expect(host.vm.stackDepth == 0)
  }

  /// Strings that are collected leave their addresses to others of the same length, and many share a slot.
  @Test("Short texts that are copied again are the right ones, and share their bytes")
  func shortTextsAreCopiedAgain() throws {
    let host = try TestHost()
    let make = try host.load(
      "local i, length = ...; return (('%08d'):format(i)):rep(5):sub(1, length)")
    for index in 0..<repetitions(5000) {
      let length = 1 + index % 41
      let expected = String(
        repeating: String(repeating: "0", count: 8 - String(index).count) + String(index), count: 5
      ).prefix(length)
      let results = try host.vm.call(make, [.integer(Int64(index)), .integer(Int64(length))])
      #expect(results == [.string(ByteString(String(expected)))])
      if index % 100 == 0 { try host.run("collectgarbage()") }
    }
    let list = try host.vm.makeList(count: 2) { .string($0 == 0 ? "the same" : "another") }
    func address(_ index: Int) throws -> UnsafePointer<UInt8>? {
      guard case .string(let text) = try host.vm.element(index, of: list) else { return nil }
      return text.withUnsafeBytes { $0.baseAddress }
    }
    let first = try address(1)
    #expect(try first != nil && first == address(1))
    #expect(try first != address(2))
  }

  @Test("Some fields of a table are read in their order, without metamethods")
  func fieldsAreRead() throws {
    let host = try TestHost()
    let results = try host.run(
      """
      return setmetatable({ a = 1, long_name = "text", [1] = "one", b = false },
        { __index = function() error "called" end }), { a = {} }
      """)
    guard case .reference(let table) = results[0], case .reference(let other) = results[1] else {
      Issue.record("no tables")
      return
    }
    #expect(
      try host.vm.fields("b\0missing\0long_name\0a", of: table)
        == [.boolean(false), .nil, .string("text"), .integer(1)])
    #expect(try host.vm.fields("a", of: table) == [.integer(1)])
    guard case .reference(let inner)? = try host.vm.fields("a", of: other).first else {
      Issue.record("no inner table")
      return
    }
    #expect(inner.kind == .table)
    #expect(host.vm.stackDepth == 0)
  }

  /// Short and long strings, a value of each kind, and none, at all places of what is passed at once.
  @Test("Lists of any length keep their values", arguments: [0, 1, 63, 64, 65, 200])
  func listsOfAnyLengthKeepTheirValues(count: Int) throws {
    let host = try TestHost()
    let table = try host.vm.makeTable()
    let value: (Int) -> LuaValue = { index in
      switch index % 10 {
      case 0: .integer(Int64(index))
      case 1: .string(ByteString("short \(index)"))
      case 2: .string(ByteString(String(repeating: "\(index),", count: 300)))
      case 3: .boolean(index % 2 == 0)
      case 4: .number(Double(index) / 2)
      case 5: .nil
      case 6: .string(ByteString(String(repeating: "x", count: 40)))
      case 7: .string(ByteString(String(repeating: "x", count: 41)))
      case 8: .string("")
      default: .reference(table)
      }
    }
    let list = try host.vm.makeList(count: count, value)
    for index in 0..<count {
      #expect(same(try host.vm.element(index + 1, of: list), value(index)), "\(index)")
    }
    #expect(try host.vm.element(count + 1, of: list).isNil)
    var read = 0
    try host.vm.forEachElement(1..<count + 3, of: list) { element in
      #expect(same(element, read < count ? value(read) : .nil), "\(read)")
      read += 1
    }
    #expect(read == count + 2)
  }

  private func same(_ a: LuaValue, _ b: LuaValue) -> Bool {
    switch (a, b) {
    case (.nil, .nil): true
    case (.boolean(let a), .boolean(let b)): a == b
    case (.integer(let a), .integer(let b)): a == b
    case (.number(let a), .number(let b)): a == b
    case (.string(let a), .string(let b)): a == b
    case (.reference(let a), .reference(let b)): a.vm.areSame(a, b)
    default: false
    }
  }

  @Test("A failing value ends a list")
  func aValueThatFailsEndsAList() throws {
    let host = try TestHost()
    #expect(throws: LuaError.self) {
      try host.vm.makeList(count: 100) { index in
        if index == 70 { throw LuaError(.argument, "no") }
        return .integer(Int64(index))
      }
    }
    #expect(try host.text("return 1 + 1") == "2")
  }

  static let allBytes = ByteString((0...255).map { UInt8($0) } + [0, 0])

  @Test("Strings of all bytes pass in every direction")
  func allBytesPassEverywhere() throws {
    let host = try TestHost()
    let vm = host.vm
    let bytes = Self.allBytes
    let long = ByteString((0..<5).flatMap { _ in bytes.bytes })
    let built = try host.run(
      "local t = {} for i = 0, 255 do t[#t + 1] = string.char(i) end return table.concat(t) .. '\\0\\0'"
    )
    guard case .string(bytes)? = built.first else {
      Issue.record("results of a chunk change bytes")
      return
    }
    try host.install(
      "X",
      [
        "echo": { call in call.answer(.string(try #require(call.bytes(1)))) },
        "bytes": { call in
          try #require(call.withBytes(1) { call.answer(bytes: $0) })
        },
        "argument": { call in call.answer(argument: 1) },
        "raise": { call in throw LuaError(value: try call.value(1), message: "") },
        "message": { call in throw LuaError(.memory, try #require(call.bytes(1))) },
      ])
    for value in [bytes, long, ""] {
      for name in ["echo", "bytes", "argument"] {
        let result = try host.run("return X.\(name)(...) == ..., X.\(name)(...)", [.string(value)])
        guard case .boolean(true) = result[0], case .string(value) = result[1] else {
          Issue.record("\(name) changes bytes")
          continue
        }
      }
      for name in ["raise", "message"] {
        #expect(
          try host.text("return select(2, pcall(X.\(name), ...)) == ...", [.string(value)])
            == "true")
      }
      do {
        try host.run("error(..., 0)", [.string(value)])
      } catch let error as LuaError {
        #expect(error.message == value)
      }
      let table = try vm.makeTable(values: [.string(value)], fields: [(value, .string(value))])
      guard case .string(value) = try vm.element(1, of: table),
        case .string(value) = try vm.get(.string(value), in: table)
      else {
        Issue.record("tables change bytes")
        continue
      }
      #expect(try vm.tostring(.string(value)) == value)
      #expect(try vm.pairs(of: table).count == 2)
    }
    // Type names are bytes, too.
    let named = try host.run("return setmetatable({}, {__name = ...})", [.string(bytes)])
    #expect(vm.typeName(of: named[0]) == bytes)
    // Two spellings of one text are two strings.
    #expect(ByteString("caf\u{E9}") != ByteString("cafe\u{301}"))
  }

  @Test("Numbers keep subtype and bits")
  func numbersKeepSubtypeAndBits() throws {
    let host = try TestHost()
    try host.install("X", ["echo": { call in call.answer(try call.value(1)) }])
    let text = try host.text(
      """
      local seen = {}
      for _, x in ipairs {1, 1.0, math.maxinteger, math.mininteger, 2^53, 2^63, -2^63, -0.0, 0.0,
          1/0, -1/0, 5e-324, 9007199254740993} do
        local y = X.echo(x)
        assert(math.type(x) == math.type(y) and string.format('%q', x) == string.format('%q', y))
        seen[#seen + 1] = math.type(y)
      end
      local nan = X.echo(0/0)
      assert(nan ~= nan and math.type(nan) == 'float')
      return table.concat(seen, ' ')
      """)
    #expect(text.hasPrefix("integer float integer integer float"))
    let values: [LuaValue] = [
      .integer(.min), .integer(.max), .number(-0.0), .number(.nan), .integer(1), .number(1),
    ]
    let back = try host.run("return ...", values)
    for (value, result) in zip(values, back) {
      switch (value, result) {
      case (.integer(let a), .integer(let b)): #expect(a == b)
      case (.number(let a), .number(let b)):
        #expect(a.bitPattern == b.bitPattern || a.isNaN && b.isNaN)
      default: Issue.record("\(value) became \(result)")
      }
    }
  }

  @Test("Nils keep their places")
  func nilsKeepTheirPlaces() throws {
    let host = try TestHost()
    try host.install(
      "X",
      [
        "echo": { call in
          call.answer(try (0..<call.count).map { try call.value($0 + 1) })
        },
        "count": { call in call.answer(.integer(Int64(call.count))) },
      ])
    let text = try host.text(
      """
      local t = {n = 250}
      for i = 1, 250, 3 do t[i] = i % 2 == 0 and i or 'v' .. i end
      local r = table.pack(X.echo(table.unpack(t, 1, 250)))
      for i = 1, 250 do assert(rawequal(r[i], t[i])) end
      return r.n, X.count(nil, nil), X.count(), select('#', X.echo(nil, 1, nil))
      """)
    #expect(text == "250 2 0 3")
  }

  @Test("Many results and arguments")
  func manyResultsAndArguments() throws {
    let host = try TestHost()
    let table = try host.vm.makeTable()
    try host.install(
      "X",
      [
        "integers": { call in
          call.answer((0..<(call.integer(1) ?? 0)).map { .integer($0) })
        },
        "tables": { call in
          call.answer((0..<(call.integer(1) ?? 0)).map { _ in .reference(table) })
        },
      ])
    for count in [5, 6, 7, 8, 9, 15, 16, 17, 255, 1000, 200_000] {
      #expect(
        try host.text(
          "return select('#', X.integers(...)), (select(-1, X.integers(...)))",
          [.integer(Int64(count))])
          == "\(count) \(count - 1)")
    }
    #expect(
      try host.text(
        "return select('#', X.tables(3000)), (select(-1, X.tables(3000))) == ...",
        [.reference(table)])
        == "3000 true")
    // More than a Lua stack holds.
    #expect(
      try host.text("return select(2, pcall(X.integers, 1000001))").contains("too many results"))
    #expect(
      try host.text("return select(2, pcall(X.tables, 1000001))").contains("too many results"))
    #expect(throws: LuaError.self) {
      try host.run("return ...", Array(repeating: .integer(1), count: 1_000_001))
    }
    #expect(
      try host.run("return ...", Array(repeating: .integer(1), count: 100_000)).count == 100_000)
  }

  @Test("Identity survives the round trip through Swift")
  func identitySurvivesTheWayThroughSwift() throws {
    let host = try TestHost()
    try host.install("X", ["echo": { call in call.answer(try call.value(1)) }])
    #expect(
      try host.text(
        """
        local thread = coroutine.create(print)
        for _, v in ipairs {{}, print, function() end, thread, io.stdout} do
          assert(rawequal(X.echo(v), v))
        end
        local e = setmetatable({}, {__tostring = function() return 'E' end})
        local ok, caught = pcall(function() X.echo(1) error(e) end)
        return rawequal(e, caught)
        """) == "true")
  }

  @Test("Conversion leaves the stack unchanged")
  func conversionLeavesTheStackAlone() throws {
    let host = try TestHost()
    let table = try host.run("return {[1] = 1, [2.5] = 2, [true] = 3, x = {}}")
    guard case .reference(let reference) = table[0] else { return }
    let pairs = try host.vm.pairs(of: reference)
    #expect(pairs.count == 4)
    #expect(host.vm.listCount(reference) == nil)
    #expect(try host.text("local t = ... return t[1], t[2.5], t[true]", table) == "1 2 3")
  }

  @Test(
    "Lists are recognized",
    arguments: [
      ("{}", 0), ("{1, 2, 3}", 3), ("{1, nil, 3}", nil), ("{[2] = 1}", nil), ("{1, x = 2}", nil),
      ("{[1.5] = 1}", nil), ("{[0] = 1}", nil), ("5", nil), ("{[3] = 3, [1] = 1, [2] = 2}", 3),
    ] as [(String, Int?)])
  func listsAreRecognized(_ source: String, _ count: Int?) throws {
    let host = try TestHost()
    guard case .reference(let table)? = try host.run("return \(source)").first else { return }
    #expect(host.vm.listCount(table) == count)
  }

  @Test("The kinds of a list's values are known, whether Lua's tables are read directly or not")
  func theKindsOfAListAreKnown() throws {
    for withheld in [[], LuaMechanisms.tableLayout] {
      try TestHost.$withheld.withValue(withheld) {
        let host = try TestHost()
        for (source, kinds) in [
          ("{}", []), ("{1, 2}", .integer), ("{1.5}", .float), ("{1, 1.5}", [.integer, .float]),
          ("{'a', ('b'):rep(99)}", .string), ("{true, false}", .boolean),
          ("{{}, print, function() end, 'a'}", [.table, .function, .string]),
          ("{[3] = true, [1] = 1, [2] = 2}", [.integer, .boolean]), ("{1, io.stdout}", nil),
          ("{1, nil, 3}", nil), ("{1, x = 2}", nil), ("{[0] = 1}", nil), ("{1, [1.5] = 1}", nil),
        ] as [(String, LuaKinds?)] {
          guard case .reference(let table)? = try host.run("return \(source)").first else {
            Issue.record("no table: \(source)")
            continue
          }
          let all: LuaKinds = [.boolean, .integer, .float, .string, .table, .function]
          let known = host.vm.list(table).flatMap { all.isSuperset(of: $0.kinds) ? $0.kinds : nil }
          #expect(known == kinds, "\(source)")
        }
        #expect(try host.text("return 1") == "1")
      }
    }
  }

  @Test(
    "Tables render short and sorted",
    arguments: [
      ("1", "1"), ("1.0", "1.0"), ("'a'", "a"), ("nil", "nil"), ("true", "true"),
      ("{}", "{}"), ("{1, 2, a = 3}", "{1, 2, a = 3}"),
      ("{b = 1, a = 2, [10] = 3, [true] = 4}", "{10 = 3, a = 2, b = 1, true = 4}"),
      ("{{1}, {x = {}}}", "{{1}, {x = {}}}"),
      ("(function() local t = {1} t[2] = t t.x = t return t end)()", "{1, {…}, x = {…}}"),
      ("setmetatable({}, {__tostring = function() return 'T!' end})", "T!"),
      ("{setmetatable({}, {__index = error, __pairs = error, __len = error})}", "{{}}"),
    ])
  func rendersShortAndSorted(_ source: String, _ expected: String) throws {
    let host = try TestHost()
    let value = try host.run("return \(source)").first ?? .nil
    #expect(try host.vm.render(value, limit: 120).description == expected)
  }

  @Test("Rendering is cut at its limit")
  func renderingIsCutAtItsLimit() throws {
    let host = try TestHost()
    for source in [
      "('x'):rep(500)", "('ä'):rep(500)", "('€'):rep(119) .. 'ab'",
      "(function() local t = {} for i = 1, 1000 do t['k' .. i] = i end return t end)()",
      "(function() local t = {} for i = 1, 300 do t = {t} end return t end)()",
    ] {
      for limit in [1, 2, 40, 120] {
        let value = try host.run("return \(source)").first ?? .nil
        let text = try host.vm.render(value, limit: limit)
        #expect(text.description.count == limit, "\(source) at \(limit)")
        #expect(text.description.hasSuffix("…"))
        #expect(String(validating: text.bytes, as: UTF8.self) != nil)
      }
    }
    let exact = try host.run("return ('x'):rep(120)").first ?? .nil
    #expect(try host.vm.render(exact, limit: 120).bytes.count == 120)
    // Malformed text stays short as well, and failing functions do no harm.
    let malformed = try host.run("return ('\\x80'):rep(5000)").first ?? .nil
    #expect(try host.vm.render(malformed, limit: 120).bytes.count < 900)
    let failing = try host.run("return setmetatable({}, {__tostring = error})").first ?? .nil
    #expect(try host.vm.render(failing, limit: 120).description.hasPrefix("table: "))
  }

  @Test("Interned strings are found")
  func internedStringsAreFound() throws {
    let host = try TestHost()
    try host.install(
      "X",
      [
        "intern": { call in
          try call.intern(1, as: call.integer(2) ?? 0)
          return call.answer()
        },
        "find": { call in call.answer(call.interned(1).map { .integer($0) } ?? .nil) },
      ])
    let found = try host.text(
      """
      for i = 1, 500 do X.intern('key' .. i, i) end
      X.intern('caf\\xe9', 1000) X.intern('a\\0b', 1001)
      return X.find('key77'), X.find('none'), X.find(77), X.find(nil), X.find({}), X.find('caf\\xe9'), X.find('a\\0b'), X.find('a')
      """)
    #expect(found == "77 nil nil nil nil 1000 1001 nil")
  }
}
