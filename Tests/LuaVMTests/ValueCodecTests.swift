@_spi(Scripting) import LuaVM
import Testing

/// Values as bytes, from one state into another.
@Suite("Transfer of values between states", .alsoWithout(.tableLayout))
struct ValueCodecTests {
  let home: TestHost
  let away: TestHost

  init() throws {
    home = try TestHost()
    away = try TestHost()
  }

  /// A script's result as it arrives.
  func sent(_ script: String) throws -> LuaValue {
    let buffer = EncodedBuffer()
    try home.vm.encode(try home.run(script).first ?? .nil, into: buffer)
    let (value, end) = try away.vm.decode(buffer)
    #expect(end == buffer.count)
    #expect(home.vm.stackDepth == 0 && away.vm.stackDepth == 0)
    return value
  }

  /// The result of a function over there about it.
  func told(_ script: String, _ question: String) throws -> String {
    try away.text("local v = ... \(question)", [try sent(script)])
  }

  @Test(
    "Scalars keep type and value",
    arguments: [
      ("nil", "nil nil"), ("true", "boolean true"), ("false", "boolean false"),
      ("1", "integer 1"), ("1.0", "float 1.0"), ("-0.0", "float -0.0"),
      ("math.mininteger", "integer -9223372036854775808"), ("2^63", "float 9.2233720368548e+18"),
      ("0/0 ~= 0/0 and 1/0", "float inf"), ("''", "string "), ("'a\\0b'", "string a\0b"),
    ])
  func scalars(_ expression: String, _ expected: String) throws {
    #expect(
      try told(
        "return \(expression)", "return (math.type(v) or type(v)) .. ' ' .. tostring(v)")
        == expected)
  }

  @Test("Floats keep their bits")
  func floatsKeepTheirBits() throws {
    for bits: UInt64 in [0x7FF8_0000_DEAD_BEEF, 0xFFF8_0000_0000_0001, 1, 0x8000_0000_0000_0000] {
      let buffer = EncodedBuffer()
      try home.vm.encode(.number(Double(bitPattern: bits)), into: buffer)
      guard case .number(let number) = try away.vm.decode(buffer).value else {
        Issue.record("no float")
        return
      }
      #expect(number.bitPattern == bits)
    }
  }

  @Test("Strings keep every byte at any length")
  func stringsKeepEveryByteAtAnyLength() throws {
    for count in [0, 1, 39, 40, 41, 127, 128, 255, 16383, 16384, 100_000] {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      let buffer = EncodedBuffer()
      try home.vm.encode(.string(ByteString(bytes)), into: buffer)
      guard case .string(let string) = try away.vm.decode(buffer).value else {
        Issue.record("no string")
        return
      }
      #expect(string.bytes == bytes)
    }
  }

  @Test("Cycles and sharing are kept")
  func cyclesAndSharingAreKept() throws {
    #expect(
      try told(
        """
        local t, s = {}, {1}
        t.me, t.a, t.b, t[s], t[t] = t, s, s, 'key', 'self'
        s.up = t
        return t
        """,
        "return v.me == v, v.a == v.b, v[v.a], v[v], v.a.up == v, #v.a")
        == "true true key self true 1")
  }

  @Test(
    "Tables of all shapes are copied",
    arguments: [
      "{}", "{1, 2, 3}", "{1, nil, 3}", "{n = 1, 10, 20, [4] = 40, ['1'] = 'x', [1.5] = 2}",
      "{1, 2.5, -3, 4e300, -0.0, math.mininteger, 1/0}", "{1, 2, 'three', 4, 5.5}", "{'one', 2}",
      "{1, 2.5, 3, n = 3, [10] = 4}", "{{1, 2}, {3.5, {4, 5, 'six'}, 7}}",
      "{[3] = 3, [2] = 2, [1] = 1}", "{[-1] = 1, [0] = 0, [1] = 1}", "{false, true, 'x', {}, 2.5}",
      "table.pack(nil, 2, nil)",
      "(function() local t = {} for i = 300, 1, -1 do t[i] = i end "
        + "t.x = 1 return t end)()",
      "(function() local t = {} for i = 1, 300 do t[i] = i % 7 == 0 and 'seven' or i end "
        + "return t end)()",
      "(function() local t = {} for i = 1, 9 do t[i] = i end t[9] = nil t[4] = nil return t end)()",
    ])
  func tablesOfAllShapes(_ expression: String) throws {
    let show =
      """
      local function show(v)
        if type(v) ~= 'table' then return (math.type(v) or type(v)) .. tostring(v) end
        local parts = {}
        for k, e in pairs(v) do parts[#parts + 1] = show(k) .. '=' .. show(e) end
        table.sort(parts)
        return '{' .. table.concat(parts, ',') .. '}'
      end
      """
    let here = try home.text("\(show) return show(\(expression))")
    let there = try away.text("\(show) return show(...)", [try sent("return \(expression)")])
    #expect(here == there)
  }

  @Test("Lists of numbers are copied after growing and shrinking")
  func listsOfNumbersThatGrewAndShrank() throws {
    let seed = UInt64.random(in: 0...(.max))
    print("lists seed: \(seed)")
    let make =
      """
      math.randomseed(\(seed & 0xFFFF_FFFF))
      local function make()
        local t = math.random(3) == 1 and {1, 2.5, 3} or {}
        for _ = 1, math.random(4) do
          local n = math.random(70)
          for i = math.random(3), n do t[i] = math.random(2) == 1 and i or i + 0.5 end
          for i = n, math.random(n), -1 do t[i] = nil end
          if math.random(3) == 1 then t[math.random(80)] = nil end
          if #t > 90 then t[#t + 1] = 1 end
        end
        if math.random(9) == 1 then t.key = 1 end
        return t
      end
      local lists = {}
      for i = 1, 300 do lists[i] = make() end
      """
    let show =
      """
      local texts = {}
      for i, t in ipairs(lists) do
        local parts = {}
        for k, v in pairs(t) do parts[#parts + 1] = tostring(k) .. '=' .. tostring(v) end
        table.sort(parts)
        texts[i] = table.concat(parts, ',')
      end
      return table.concat(texts, ';')
      """
    let lists = try home.run("\(make) return lists")[0]
    let buffer = EncodedBuffer()
    try home.vm.encode(lists, into: buffer)
    let here = try home.text("local lists = ... \(show)", [lists])
    let there = try away.text("local lists = ... \(show)", [try away.vm.decode(buffer).value])
    #expect(here == there)
    #expect(here.utf8.count > 10_000)
  }

  @Test("Tables of any depth are copied")
  func noDepthIsTooDeep() throws {
    let question = "local n = 0 while v do n, v = n + 1, v[1] or v.next end return n"
    #expect(
      try told("local t = {} for i = 1, 99999 do t = {t} end return t", question) == "100000")
    #expect(
      try told("local t = {} for i = 1, 99999 do t = {next = t} end return t", question)
        == "100000")
  }

  @Test("Metatables are refused, and no metamethod runs")
  func metatablesAreRefusedAndNoMetamethodRuns() throws {
    let script =
      """
      local function no() error('a metamethod ran') end
      return setmetatable({1, a = 2}, {__index = no, __len = no, __pairs = no, __eq = no,
        __gc = no, __name = 'mine', __metatable = no})
      """
    do {
      _ = try sent(script)
      Issue.record("it was taken")
    } catch let error as EncodeError {
      #expect(
        error.description(of: "v")
          == "v is a table (mine) whose metatable no module holds: it can't go to or from a worker")
    }
  }

  @Test("A metatable is transferred by the name of its module")
  func metatablesGoByTheNameOfTheirModule() throws {
    let module = """
      package.preload.shapes = function()
        local Point = {} Point.__index = Point
        function Point:double() return self.x * 2 end
        return {Point = Point, __name = 'itself'}
      end
      """
    try home.run(module)
    try away.run(module)
    let script = """
      local shapes = require 'shapes'
      local p = setmetatable({x = 4}, shapes.Point)
      return {p, p, setmetatable({p}, shapes)}
      """
    #expect(
      try told(
        script,
        """
        local shapes = require 'shapes'
        return v[1] == v[2], v[1] == v[3][1], v[1]:double(), getmetatable(v[3]) == shapes
        """) == "true true 8 true")
    // A value that isn't there in the other state is an error there.
    try home.run("package.loaded.shapes.Other = {}")
    #expect(throws: LuaError.self) {
      try sent("return setmetatable({}, require('shapes').Other)")
    }
  }

  @Test(
    "A value that can't be transferred is named",
    arguments: [
      ("return print", "", "", "a function can't go to or from a worker"),
      ("return coroutine.create(print)", "", "", "a coroutine can't go to or from a worker"),
      (
        "return {{}, {}, {handle = io.stdout}}", "images", "",
        "images[3].handle is a userdata (file): it can't go to or from a worker"
      ),
      (
        "return {a = {['b c'] = {[2.5] = {[true] = print}}}}", "v", "",
        "v.a[\"b c\"][2.5][true] is a function: it can't go to or from a worker"
      ),
      (
        "return {list = {1, {[print] = 1}}}", "v", "",
        "a key of v.list[2] is a function: it can't go to or from a worker"
      ),
      (
        "return {1, S.spawn(print)}", "", "",
        "[2] is a userdata (task): it can't go to or from a worker"
      ),
    ])
  func whatCantGoIsNamed(
    _ script: String, _ root: String, _ none: String, _ expected: String
  ) throws {
    let buffer = EncodedBuffer([1, 2, 3])
    do {
      try home.vm.encode(try home.run(script).first ?? .nil, into: buffer)
      Issue.record("it went")
    } catch let error as EncodeError {
      #expect(error.description(of: root) == expected)
    }
    #expect(buffer.bytes == [1, 2, 3])
    #expect(home.vm.stackDepth == 0)
  }

  @Test("A long path is shortened at its beginning")
  func aLongPathIsCutAtItsBeginning() throws {
    let script = "local t = print for i = 1, 200 do t = {inner = t} end return t"
    do {
      try home.vm.encode(try home.run(script).first ?? .nil, into: EncodedBuffer())
      Issue.record("it went")
    } catch let error as EncodeError {
      #expect(error.path.hasPrefix("…") && error.path.hasSuffix(".inner.inner"))
      #expect(error.path.utf8.count < 230)
    }
  }

  @Test("One buffer holds many values")
  func manyValuesStandInOneBuffer() throws {
    let buffer = EncodedBuffer()
    for i in 0..<100 {
      try home.vm.encode(
        try home.run("local i = ... return {i, name = 'n' .. i}", [.integer(Int64(i))])[0],
        into: buffer)
    }
    var offset = 0
    for i in 0..<100 {
      let (value, end) = try away.vm.decode(buffer, at: offset)
      #expect(try away.text("local v = ... return v[1], v.name", [value]) == "\(i) n\(i)")
      offset = end
    }
    #expect(offset == buffer.count)
    #expect(throws: LuaError.self) { try away.vm.decode(buffer, at: offset) }
    buffer.removeAll()
    #expect(buffer.count == 0)
  }

  @Test("Arguments are transferred without an intermediate table")
  func argumentsGoWithoutADetour() throws {
    let buffer = EncodedBuffer()
    try home.install(
      "X",
      [
        "send": { call in
          for index in 1...3 { try call.encode(index, into: buffer) }
          return call.answer()
        }
      ])
    try home.run("X.send({1}, 'two')")
    let first = try away.vm.decode(buffer)
    let second = try away.vm.decode(buffer, at: first.end)
    let third = try away.vm.decode(buffer, at: second.end)
    #expect(
      try away.text(
        "local a, b, c = ... return a[1], b, c", [first.value, second.value, third.value])
        == "1 two nil")
  }

  @Test("A list that grows after its arrival keeps its numbers")
  func arrivedListsGrow() throws {
    let question =
      """
      for i = 101, 300 do v[i] = i end
      local sum = 0
      for i, n in ipairs(v) do sum = sum + n end
      collectgarbage()
      return #v, sum, v[1], math.type(v[2]), next(v), #table.move(v, 1, 300, 301)
      """
    #expect(
      try told(
        "local t = {} for i = 1, 100 do t[i] = i % 2 == 0 and i + 0.0 or i end return t", question)
        == "300 45150.0 1 float 1 600")
  }

  @Test("A list that ends among its numbers is refused")
  func listsThatEndEarly() throws {
    let buffer = EncodedBuffer()
    try home.vm.encode(try home.run("return {1, 2.5, 3, 4}")[0], into: buffer)
    for count in 1...36 {
      #expect(throws: LuaError.self) {
        try away.vm.decode(EncodedBuffer(Array(buffer.bytes.dropLast(count))))
      }
    }
    #expect(away.vm.stackDepth == 0)
  }

  @Test("Decoding any bytes ends in a value or an error")
  func anyBytesEndInAValueOrAnError() throws {
    let seed = UInt64.random(in: 0...(.max))
    print("transfer seed: \(seed)")
    var random = SplitMix(state: seed)
    let sample = EncodedBuffer()
    try home.vm.encode(
      try home.run(
        "local t = {7, 2.5, -1, 'hello', {k = 2.5}, {1, 2, 3}, x = {}} t.t = t return t")[0],
      into: sample)
    let limit = 30_000_000
    away.vm.memoryLimit = limit
    for round in 0..<repetitions(30_000) {
      var bytes = sample.bytes
      switch round % 3 {
      case 0:
        bytes =
          bytes.prefix(3)
          + (0..<Int.random(in: 0..<40, using: &random)).map { _ in
            UInt8.random(in: 0...12, using: &random)
          }
      case 1:
        for _ in 0..<3 {
          bytes[Int.random(in: bytes.indices, using: &random)] = .random(
            in: 0...255, using: &random)
        }
      default: bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
      }
      do {
        _ = try away.vm.decode(EncodedBuffer(bytes))
      } catch let error as LuaError {
        // A metatable may belong to a module.
        let isMissing = error.message.hasPrefix("module '")
        #expect(error.code == .argument || isMissing, "\(error)")
      }
    }
    #expect(away.vm.stackDepth == 0)
  }

  @Test("Secrets stay secrets")
  func secretsStaySecrets() throws {
    func install(_ host: TestHost) throws -> LuaObjectType<Hidden> {
      let type = try host.vm.defineObjectType("hidden", of: Hidden.self, methods: [:])
      try host.install(
        "H",
        [
          "hide": { call in call.answer(Hidden(try call.value(1)), type) },
          "look": { call in call.answer(call.object(1, type)?.value ?? .nil) },
        ])
      host.vm.setSecretType(type, unwrap: { $0.value }, wrap: { Hidden($0) })
      return type
    }
    _ = try install(home)
    _ = try install(away)
    #expect(
      try told(
        "local t = {5} t.s = H.hide('text') t.n = H.hide(3) t.t = H.hide(t) return t",
        "return H.look(v.s), H.look(v.n), H.look(v.t) == v, type(v.s)")
        == "text 3 true userdata")
    #expect(try told("return H.hide({x = 1})", "return H.look(v).x") == "1")
    // A value that can't go inside of one is refused.
    #expect(throws: EncodeError.self) { try sent("return H.hide(print)") }
    try MemoryTests.failEach(home, "encoding secrets") {
      try home.vm.encode(
        try home.run("return {H.hide('x'), H.hide({1})}")[0], into: EncodedBuffer())
    }
    let buffer = EncodedBuffer()
    try home.vm.encode(try home.run("return {H.hide('x'), H.hide({1})}")[0], into: buffer)
    try MemoryTests.failEach(away, "decoding secrets") { _ = try away.vm.decode(buffer) }
    // Without such a type here there is none.
    let other = try TestHost()
    #expect(throws: LuaError.self) { try other.vm.decode(buffer) }
  }

  @Test("A failure of any allocation is an error")
  func everyAllocationMayFail() throws {
    let value = try home.run(
      "local t = {} for i = 1, 40 do t[i] = {i, {tostring(i)}, k = t} end return t")[0]
    let buffer = EncodedBuffer()
    try MemoryTests.failEach(home, "encode") {
      buffer.removeAll()
      try home.vm.encode(value, into: buffer)
    }
    try MemoryTests.failEach(away, "decode") { _ = try away.vm.decode(buffer) }
  }
}

final class Hidden {
  let value: LuaValue

  init(_ value: LuaValue) {
    self.value = value
  }
}

struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
