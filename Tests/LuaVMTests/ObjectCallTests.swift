import LuaVM
import Testing

/// Calls with an object, and functions that one owner holds.
@Suite struct ObjectCallTests {
  /// Counts how calls come, and answers as its mode says.
  private final class Direct: LuaObjectMethod {
    enum Mode { case pass, nothing, argument, object }

    var mode = Mode.pass
    var count = 0
    var type: LuaObjectType<Counted>?
    var function: LuaUniqueReference?

    override func answer(_ call: LuaObjectCall) -> LuaObjectAnswer {
      count += 1
      guard let type, let object = call.object(type) else { return call.pass() }
      switch mode {
      case .pass: return call.pass()
      case .nothing: return call.answer()
      case .object: return call.answer(object, type)
      case .argument:
        if let scalar = call.scalar { return call.answer(scalar: scalar) }
        function = call.uniqueFunction()
        return call.answer(scalar: .boolean(function != nil))
      }
    }

    deinit { function = nil }
  }

  private struct Fixture {
    let host: TestHost
    let direct = Direct()

    init() throws {
      let host = try TestHost()
      let direct = direct
      self.host = host
      let type = try host.vm.defineObjectType(
        "counted", of: Counted.self,
        methods: [
          "call": LuaMethod(
            { $0.answer([.string("other"), .integer(Int64($0.count))]) }, direct: direct)
        ])
      direct.type = type
      let counter = Counted.Counter()
      try host.setGlobal("object", host.vm.value(of: Counted(counter), type))
      try host.setGlobal("another", host.vm.value(of: Counted(counter), type))
    }
  }

  @Test("An object, a scalar and a function come directly, all else as any call")
  func whatComesDirectly() throws {
    let fixture = try Fixture()
    let (host, direct) = (fixture.host, fixture.direct)
    #expect(try host.text("return object:call()") == "other 1")
    #expect(direct.count == 1)
    for other in ["'text'", "{}", "object", "1, 2", "nil, nil"] {
      #expect(try host.text("return object:call(\(other))").hasPrefix("other"))
    }
    #expect(
      try host.text("return object.call(), object.call(5), object.call({}, 5)")
        == "other other other 2")
    #expect(direct.count == 1)
    direct.mode = .nothing
    #expect(try host.text("return object:call()") == "")
    direct.mode = .object
    #expect(
      try host.text("return rawequal(object:call(), object), rawequal(object:call(), another)")
        == "true false")
    direct.mode = .argument
    for scalar in ["nil", "true", "false", "7", "2.5"] {
      #expect(try host.text("return object:call(\(scalar))") == scalar)
    }
    #expect(try host.text("return object:call()") == "nil")
    direct.count = 0
    #expect(host.vm.stackDepth == 0)
  }

  @Test("A function that one owner holds is given back in the end, however that comes")
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
        case .returned(.nil) = vm.run(function, argument)
      else {
        Issue.record("\(shown) wasn't returned from")
        continue
      }
      #expect(try host.text("return R") == shown)
    }
    try take("function(v) return v + 1, 'and more' end")
    if let function = direct.function.take() {
      guard case .returned(.integer(8)) = vm.run(function, .integer(7)) else {
        Issue.record("8 expected")
        return
      }
    }
    for (code, outcome) in [
      ("return 'text'", LuaStep.Outcome.finished), ("error 'raised'", .failed),
      ("S.sleep(1)", .parked), ("coroutine.yield()", .yielded),
    ] {
      try take("function() \(code) end")
      guard let function = direct.function.take(), case .step(let step) = vm.run(function, .nil)
      else {
        Issue.record("\(code) is no step")
        continue
      }
      #expect(step.outcome == outcome)
      vm.release(step.coroutine, finished: outcome == .finished)
    }
    // The pool keeps a coroutine.
    #expect(vm.referenceCount <= before + 2)
    #expect(vm.stackDepth == 0)

    // Void after the state was closed.
    try take("print")
    vm.close()
    if let function = direct.function.take() {
      guard case .refused = vm.run(function, .nil), vm.refusal.code == .closed else {
        Issue.record("a closed state ran a function")
        return
      }
    }
  }

  @Test("A function that several hold is one reference, until the last of them lets go")
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
      guard case .returned(.integer(let integer)) = vm.run(function, .nil) else { return nil }
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

  @Test("Whichever allocation fails, a function is run or refused, and given back")
  func eachAllocation() throws {
    let fixture = try Fixture()
    let (host, direct) = (fixture.host, fixture.direct)
    direct.mode = .argument
    let take = try host.load("return object:call(function(v) return #v end)")
    let text = LuaString(String(repeating: "long ", count: 100))
    var references = 0
    var failures = 0
    for n: UInt64 in 1...100 {
      _ = try host.vm.call(take)
      guard let function = direct.function.take() else { continue }
      host.vm.failAllocation(n)
      switch host.vm.run(function, .string(text)) {
      case .returned(.integer(500)): break
      case .refused:
        failures += 1
        #expect(host.vm.refusal.code == .memory)
      case .step(let step):
        failures += 1
        #expect(step.outcome == .failed)
        host.vm.release(step.coroutine, finished: false)
      case .returned: Issue.record("500 expected")
      }
      host.vm.failAllocation(0)
      if n == 50 { references = host.vm.referenceCount }
    }
    #expect(failures > 0)
    #expect(host.vm.referenceCount == references)
    #expect(host.vm.stackDepth == 0)
  }
}
