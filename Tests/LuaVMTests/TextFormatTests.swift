@_spi(Scripting) import LuaVM
import Testing

/// JSON and CSV where memory runs out, and as Swift programs use them.
@Suite("JSON and CSV", .alsoWithout(.tableLayout))
struct TextFormatTests {
  let host: TestHost

  init() throws {
    host = try TestHost()
  }

  /// Strings with escapes, many levels, and tables that go to Lua in both ways.
  private var document: ByteString {
    let numbers = (1...300).map { "\($0).5" }.joined(separator: ",")
    let members = (1...200).map { "\"member \($0)\":{\"a\\n\":[\($0)]}" }.joined(separator: ",")
    let deep = String(repeating: "[", count: 50) + String(repeating: "]", count: 50)
    return ByteString("[[\(numbers)],{\(members)},\(deep),\"\\u00e9\\ud83d\\ude00\",null]")
  }

  @Test("A text is read, or memory runs out")
  func decoding() throws {
    let text = document
    try MemoryTests.failEach(host, "decode") {
      let value = try host.vm.decodeJSON(text)
      #expect(try host.text("local v = ... return #v, #v[1], v[4]", [value]) == "5 300 é😀")
    }
  }

  @Test("A value is written, or memory runs out", arguments: [true, false])
  func encoding(sorted: Bool) throws {
    let value = try host.vm.decodeJSON(document)
    var options = JSONWriting()
    options.sortsKeys = sorted
    let whole = try host.vm.encodeJSON(value, options).text
    try MemoryTests.failEach(host, "encode") {
      let text = try host.vm.encodeJSON(value, options).text
      #expect(text == whole)
    }
  }

  @Test("A row is read, or memory runs out")
  func rows() throws {
    var options = CSVReading()
    options.setType(.number, isOptional: true, ofColumn: 3)
    let text = Array("a,\"b\"\"c\",1.5,d\n".utf8)
    try MemoryTests.failEach(host, "rows") {
      let (_, place, table) = try host.vm.readCSV(text, from: 0, isLast: true, options)
      #expect(place.bytes == text.count && place.fields == 4)
      let row = try #require(table)
      #expect(try host.text("return table.concat(..., '|')", [.reference(row)]) == "a|b\"c|1.5|d")
    }
  }

  @Test("A limit of memory holds for texts, too")
  func limit() throws {
    let value = try host.run("local s = ('x'):rep(1000000) return { s, s, s, s, s, s, s, s }")[0]
    let before = host.vm.memoryUsed
    host.vm.memoryLimit = before + 4_000_000
    #expect(throws: LuaError.self) { try host.vm.encodeJSON(value) }
    host.vm.memoryLimit = nil
    try host.vm.collectGarbage()
    // But for Lua's stack, whose size may change.
    #expect(host.vm.memoryUsed <= before + 4096)
    let text = try host.vm.encodeJSON(value).text
    #expect(text.count == 8_000_000 + 25)
  }

  @Test("A text that isn't JSON is an error with its place")
  func problems() throws {
    let error = #expect(throws: JSONTextError.self) {
      try host.vm.decodeJSON("{\n\"a\": [1 2]}")
    }
    #expect(error?.message == "expected ',' or ']' at line 2, column 9")
    #expect(error?.offset == 11)
    let refused = #expect(throws: JSONValueError.self) {
      try host.vm.encodeJSON(try host.run("return { x = { print } }")[0])
    }
    #expect(refused?.message == "can't encode a value of type function at x[1]")
    #expect(host.vm.stackDepth == 0)
  }

  /// A random value: scalars, lists in any order, objects, some that JSON can't represent, some cycles.
  private static let randomValue = #"""
    local arrays, objects, seed = ...
    math.randomseed(seed)
    local random, open = math.random, {}
    local strange = { print, 0 / 0, -1 / 0, "\xff", "\xed\xa0\x80", coroutine.create(print) }
    local function value(depth)
      local kind = random(depth > 4 and 8 or 14)
      if kind == 1 then return random(2) == 1 end
      if kind == 2 then return random(-1000, 1000) end
      if kind == 3 then return (random() - 0.5) * 10.0 ^ random(-20, 20) end
      if kind == 4 then return random(-10 ^ 9 // 1, 10 ^ 9 // 1) / 10 ^ random(0, 12) end
      if kind == 5 then return ("\u{e9}\u{20ac}\u{1f600}\"\\x\n"):rep(random(0, 6)) .. ("y"):rep(random(0, 9)) end
      if kind == 6 then return ("z"):rep(random(0, 90)) end
      if kind == 7 then return random(40) == 1 and strange[random(#strange)] or random(0) end
      if kind == 8 then return random(10) == 1 and open[random(#open)] or "plain" end
      local made, mark = {}, random(6)
      open[#open + 1] = made
      if kind <= 11 then
        local count = random(0, 12)
        local first, last, step = 1, count, 1
        if random(2) == 1 then first, last, step = count, 1, -1 end
        for i = first, last, step do made[i] = value(depth + 1) end
        if random(4) == 1 then made[count] = nil end
        if random(40) == 1 then made[count + 2] = 1 end
        if random(40) == 1 then made.x = 1 end
        if mark == 1 then setmetatable(made, arrays) end
      else
        local key = "x"
        for _ = 1, random(15) == 1 and 70 or random(0, 6) do
          key = ("key "):rep(random(0, 3)) .. random(200)
          made[key] = value(depth + 1)
        end
        if random(4) == 1 then made[key] = nil end
        if random(40) == 1 then made[random(3) - 2] = 1 end
        if random(40) == 1 then made[1.5] = 1 end
        if random(40) == 1 then made["\xff"] = 1 end
        if mark == 1 then setmetatable(made, objects) end
      end
      if mark == 2 then setmetatable(made, {}) end
      open[#open] = nil
      return made
    end
    return value(0)
    """#

  @Test("A value is written the same from where Lua keeps its tables and by the API")
  func bothWays() throws {
    let other = try TestHost.$withheld.withValue(.tableLayout) { try TestHost() }
    var refused = 0
    for seed in 1...1000 {
      var options = JSONWriting()
      options.indent = seed % 3
      options.isASCII = seed % 5 == 0
      options.emptyIsArray = seed % 7 == 0
      options.replacesInvalid = seed % 11 == 0
      options.maxDepth = seed % 13 == 0 ? 3 : 1000
      let texts = try [host, other].map { host in
        let marks = try [true, false].map { isArray in
          try host.run(
            "return getmetatable(...)", [.reference(try host.vm.makeJSONTable(isArray: isArray))])[
              0]
        }
        let value = try host.run(Self.randomValue, marks + [.integer(Int64(seed))])[0]
        do {
          return try host.vm.encodeJSON(value, options).text
        } catch let error as JSONValueError {
          refused += 1
          return error.message
        }
      }
      #expect(texts[0] == texts[1], "seed \(seed)")
    }
    // Of both kinds there are many.
    #expect(refused > 60 && refused < 1940)
  }
}
