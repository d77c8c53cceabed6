@_spi(Scripting) import LuaVM
import Testing

/// Direct calls, and functions that one owner holds.
@Suite("Direct calls", .alsoWithout(.freedObjects))
struct DirectCallTests {
  /// Counts the direct calls and returns results according to its mode.
  private final class Direct: LuaDirectMethod {
    enum Mode { case pass, nothing, argument, object, key, text }

    var mode = Mode.pass
    var count = 0
    var type: LuaObjectType<Counted>?
    var function: LuaUniqueReference?
    var text = ByteString([])

    override func answer(_ call: LuaDirectCall) -> LuaDirectAnswer {
      count += 1
      switch mode {
      case .pass: return call.pass()
      case .nothing: return call.answer()
      case .text: return text.bytes.withUnsafeBytes { call.answer(bytes: $0) }
      case .key: return call.answer(takesKey ? call.key + Int64(call.slot) : 0)
      case .object:
        guard let type, let object = call.object(type) else { return call.pass() }
        return call.answer(object, type)
      case .argument:
        if call.hasArgument != call.hasValue {
          function = call.uniqueFunction()
          return call.answer(function != nil)
        }
        switch call.value {
        case .nil: return call.answerNil()
        case .boolean(let flag): return call.answer(flag)
        case .integer(let integer): return call.answer(integer)
        case .number(let number): return call.answer(number)
        case .string(let string): return string.bytes.withUnsafeBytes { call.answer(bytes: $0) }
        case .reference: return call.pass()
        }
      }
    }

    deinit { function = nil }
  }

  /// Two objects with the methods `call` and `keyed`, a handle with the same, and the strings `a` and
  /// `b`, which are interned.
  private struct Fixture {
    let host: TestHost
    let direct = Direct()
    let keyed = Direct(takesKey: true)

    init() throws {
      let host = try TestHost()
      self.host = host
      let other: LuaFunction = { $0.answer([.string("other"), .integer(Int64($0.count))]) }
      let methods: LuaFields<LuaMethod> = [
        "call": LuaMethod(other, direct: direct), "keyed": LuaMethod(other, direct: keyed),
      ]
      let type = try host.vm.defineObjectType("counted", of: Counted.self, methods: methods)
      direct.type = type
      keyed.type = type
      _ = try host.vm.defineHandleType("handle", methods: methods)
      let counter = Counted.Counter()
      try host.setGlobal("object", host.vm.value(of: Counted(counter), type))
      try host.setGlobal("another", host.vm.value(of: Counted(counter), type))
      let handing = LuaCallback(
        try host.load("return ..."), handle: .first, result: .userdata)
      guard case .returned(let handle, _) = handing.start(slot: 40, generation: 1) else {
        throw TestProblem("no handle")
      }
      try host.setGlobal("handle", handle)
      let intern = try host.vm.makeFunction { call in
        try call.intern(1, as: call.integer(2) ?? 0)
        return call.answer()
      }
      try host.setGlobal("intern", .reference(intern))
      try host.run("intern('a', 1) intern('b', 2)")
    }
  }

  @Test("A method with its object or handle and a value is called directly")
  func whatComesDirectly() throws {
    let fixture = try Fixture()
    let (host, direct) = (fixture.host, fixture.direct)
    #expect(try host.text("return object:call()") == "other 1")
    #expect(try host.text("return handle:call('a')") == "other 2")
    #expect(direct.count == 2)
    for other in ["{}", "object", "1, 2", "nil, nil", "coroutine.create(print)"] {
      #expect(try host.text("return object:call(\(other))").hasPrefix("other"))
    }
    #expect(
      try host.text(
        "return object.call(), object.call(5), object.call({}, 5), object.call(io.stdout)")
        == "other other other other 1")
    #expect(direct.count == 2)
    direct.mode = .nothing
    #expect(try host.text("return object:call()") == "")
    direct.mode = .object
    #expect(
      try host.text("return rawequal(object:call(), object), rawequal(object:call(), another)")
        == "true false")
    // A handle is no object.
    #expect(try host.text("return object.call(handle)") == "other 1")
    direct.mode = .argument
    for (value, shown) in [
      ("nil", "nil"), ("true", "true"), ("false", "false"), ("7", "7"), ("2.5", "2.5"),
      ("'text'", "text"), ("''", ""), ("'a'", "a"),
      ("('x'):rep(1000)", String(repeating: "x", count: 1000)),
      ("", "nil"),
    ] {
      #expect(try host.text("return object:call(\(value))") == shown)
    }
    #expect(host.vm.stackDepth == 0)
  }

  @Test("A text of any length is returned with all its bytes")
  func texts() throws {
    let fixture = try Fixture()
    let (host, direct) = (fixture.host, fixture.direct)
    direct.mode = .text
    for count in [0, 1, 7, 39, 40, 41, 42, 1000] {
      direct.text = ByteString((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) })
      try host.setGlobal("expected", .string(direct.text))
      #expect(
        try host.text("return select('#', object:call()), object:call() == expected") == "1 true")
    }
    #expect(direct.count == 16)
    #expect(host.vm.stackDepth == 0)
  }

  @Test(
    "A short text without memory for it is an error, and a long one is left to the general call",
    arguments: [20, 40, 41, 400])
  func textsWithoutMemory(_ count: Int) throws {
    let fixture = try Fixture()
    let (host, direct) = (fixture.host, fixture.direct)
    direct.mode = .text
    let caller = try host.load("return #object:call()")
    var number = 0
    var failures = 0
    try MemoryTests.failEach(host, "a text of \(count) bytes") {
      number += 1
      // Lua would find a short text that it has.
      let digits = String(number)
      direct.text = ByteString(digits + String(repeating: "-", count: count - digits.utf8.count))
      failures += 1
      let length = try host.vm.call(caller).first
      if case .integer(Int64(count)) = length {
        failures -= 1
      } else if count <= 40 || length != .integer(Int64("other".utf8.count)) {
        Issue.record("\(count) expected")
      }
    }
    #expect(failures > 0)
    #expect(host.vm.stackDepth == 0)
  }

  @Test("A method with a key is called directly if the key is known")
  func keys() throws {
    let fixture = try Fixture()
    let (host, keyed) = (fixture.host, fixture.keyed)
    keyed.mode = .key
    #expect(try host.text("return handle:keyed('a'), handle:keyed('b', 5)") == "41 42")
    #expect(keyed.count == 2)
    for other in ["", "'c'", "5", "'a', {}", "'a', 1, 2", "nil", "{}"] {
      #expect(try host.text("return handle:keyed(\(other))").hasPrefix("other"))
    }
    #expect(try host.text("return handle.keyed('a', 'b')") == "other 2")
    #expect(keyed.count == 2)
    keyed.mode = .argument
    #expect(try host.text("return handle:keyed('a', 'text')") == "text")
    #expect(try host.text("return object:keyed('a', 0.5), object:keyed('a')") == "0.5 nil")
    #expect(try host.text("return handle:keyed('a', print)") == "true")
    // It doesn't keep its state.
    keyed.function = nil
    keyed.mode = .object
    #expect(try host.text("return rawequal(object:keyed('a'), object)") == "true")
    #expect(try host.text("return handle:keyed('a')") == "other 2")
    // A handle of a type before is none.
    _ = try host.vm.defineHandleType("handle", methods: [:])
    #expect(try host.text("return handle:keyed('a')") == "other 2")
    #expect(host.vm.stackDepth == 0)
  }

  @Test("A function with one owner is released in every way an owner can end")
  func uniqueReferences() throws {
    let fixture = try Fixture()
    let (host, direct) = (fixture.host, fixture.direct)
    let vm = host.vm
    direct.mode = .argument
    func take(_ function: String) throws {
      #expect(try host.text("return object:call(\(function))") == "true")
    }
    let before = vm.referenceCount

    // Dropped, and replaced by another one.
    try take("print")
    try take("print")
    direct.function = nil
    #expect(vm.referenceCount == before)

    // Run: each kind of argument, and of end.
    let table = try vm.makeTable()
    for (argument, shown) in [
      (LuaValue.nil, "nil"), (.integer(3), "3"), (.number(0.5), "0.5"), (.boolean(true), "true"),
      ("", "string"), ("text", "string"), (.reference(table), "table"),
    ] {
      try take(
        """
        function(...)
          local v = ...
          local isPlain = type(v) ~= "string" and type(v) ~= "table"
          R = select("#", ...) == 1 and isPlain and tostring(v) or type(v)
        end
        """)
      guard let function = direct.function.take(),
        case .returned(.nil, mark: 0) = vm.start(function, argument)
      else {
        Issue.record("\(shown) wasn't returned from")
        continue
      }
      #expect(try host.text("return R") == shown)
    }
    try take("function(v) return v + 1, 'and more' end")
    if let function = direct.function.take() {
      guard case .returned(.integer(8), mark: 0) = vm.start(function, .integer(7)) else {
        Issue.record("8 expected")
        return
      }
    }
    for (code, expected) in [
      ("return 'text'", "text"), ("return { 1 }", "table"), ("return print", "function"),
      ("return ...", "nil"), ("error 'raised'", "failed"), ("S.sleep(1)", "parked"),
      ("coroutine.yield()", "yielded"),
    ] {
      try take("function(...) \(code) end")
      guard let function = direct.function.take() else { throw TestProblem("no function") }
      let outcome = vm.start(function, .nil)
      switch outcome {
      case .returned(.string(let text), mark: 0): #expect(text.description == expected)
      case .returned(.reference(let value), mark: 0): #expect(value.kind.name == expected)
      case .returned(.nil, mark: 0): #expect(expected == "nil")
      case .failed(let coroutine), .parked(let coroutine), .yielded(let coroutine):
        #expect("\(outcome)".hasPrefix(expected))
        vm.release(coroutine, finished: false)
      default: Issue.record("\(code): \(outcome)")
      }
    }
    // The pool keeps a coroutine.
    #expect(vm.referenceCount <= before + 2)
    #expect(vm.stackDepth == 0)

    // Void after the state was closed.
    try take("print")
    vm.close()
    if let function = direct.function.take() {
      guard case .refused(let error) = vm.start(function, .nil),
        (error as? LuaError)?.code == .closed
      else {
        Issue.record("a closed state ran a function")
        return
      }
    }
  }

  @Test("A function with several owners is one reference until the last releases it")
  func sharedFunctions() throws {
    let fixture = try Fixture()
    let (host, direct) = (fixture.host, fixture.direct)
    let vm = host.vm
    direct.mode = .argument
    func take(_ function: String) throws -> LuaUniqueReference {
      _ = try host.text("return object:call(\(function))")
      guard let taken = direct.function.take() else { throw TestProblem("no function") }
      return taken
    }
    func result(_ function: consuming LuaUniqueReference) -> Int64? {
      guard case .returned(.integer(let integer), mark: 0) = vm.start(function, .nil) else {
        return nil
      }
      return integer
    }
    // With a coroutine in the pool.
    #expect(result(try take("function() return 0 end")) == 0)
    try host.run("function f() return 1 end function g() return 2 end")
    let before = vm.referenceCount
    let first = try take("f")
    let second = try take("f")
    #expect(vm.referenceCount == before + 1)
    let other = try take("g")
    let third = try take("f")
    try host.run("f, g = nil")
    try vm.collectGarbage()
    #expect(result(second) == 1)
    try vm.collectGarbage()
    #expect(result(first) == 1)
    #expect(result(third) == 1)
    #expect(result(other) == 2)
    #expect(vm.referenceCount == before)
    // Those that follow come to have the same addresses.
    for i: Int64 in 1...1000 {
      let one = try take("function() return \(i) end")
      if i % 3 == 0 { try vm.collectGarbage() }
      #expect(result(one) == i)
    }
    #expect(vm.referenceCount == before)
  }

  @Test("Whichever allocation fails, a function is run or refused, and then released")
  func eachAllocation() throws {
    let fixture = try Fixture()
    let (host, direct) = (fixture.host, fixture.direct)
    direct.mode = .argument
    let take = try host.load("return object:call(function(v) return #v end)")
    let text = ByteString(String(repeating: "long ", count: 100))
    var references = 0
    var failures = 0
    for n: UInt64 in 1...100 {
      _ = try host.vm.call(take)
      guard let function = direct.function.take() else { continue }
      host.vm.failAllocation(n)
      switch host.vm.start(function, .string(text)) {
      case .returned(.integer(500), mark: 0): break
      case .refused(let error):
        failures += 1
        #expect((error as? LuaError)?.code == .memory)
      case .failed(let coroutine):
        failures += 1
        host.vm.release(coroutine, finished: false)
      default: Issue.record("500 expected")
      }
      host.vm.failAllocation(0)
      if n == 50 { references = host.vm.referenceCount }
    }
    #expect(failures > 0)
    #expect(host.vm.referenceCount == references)
    #expect(host.vm.stackDepth == 0)
  }
}
