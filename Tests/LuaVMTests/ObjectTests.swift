@_spi(Scripting) import LuaVM
import Testing

/// Swift objects in userdata, and handles.
@Suite("Objects in Lua", .alsoWithout(.freedObjects))
struct ObjectTests {
  /// Whether objects have finalizers, which a script can see and outlive: tests that say that they
  /// haven't, mean nothing then.
  private var endsByFinalizers: Bool { TestHost.withheld.contains(.freedObjects) }

  private struct Fixture {
    let host: TestHost
    let counter = Counted.Counter()
    let type: LuaObjectType<Counted>

    init() throws {
      let host = try TestHost()
      let counter = counter
      self.host = host
      let box = TypeBox()
      type = try host.vm.defineObjectType(
        "counted", of: Counted.self,
        methods: [
          "name": { call in
            guard let type = box.type, let object = call.object(1, type) else {
              throw LuaError(
                .argument,
                ByteString("bad argument #1 to 'name' (counted expected, got \(call.typeName(1)))"))
            }
            return call.answer(.string(ByteString(object.name)))
          },
          "fail": { _ in throw TestProblem("failed") },
          "raise": { call in throw LuaError(value: try call.value(2), message: "raised") },
        ],
        getter: { call in
          guard let type = box.type, call.object(1, type) != nil else {
            throw LuaError(.argument, "not counted")
          }
          return call.answer(.string("got"))
        })
      box.type = type
      let type = type
      let shared = Counted(counter, name: "shared")
      try host.install(
        "X",
        [
          "new": { call in
            call.answer(Counted(counter, name: call.bytes(1)?.description ?? ""), type)
          },
          "shared": { call in call.answer(shared, type) },
          "living": { call in call.answer(.integer(Int64(counter.living))) },
        ])
    }
  }

  private final class TypeBox {
    var type: LuaObjectType<Counted>?
  }

  @Test("The same object is the same userdata")
  func sameObjectIsSameUserdata() throws {
    let fixture = try Fixture()
    let host = fixture.host
    #expect(
      try host.text(
        "return rawequal(X.shared(), X.shared()), X.shared():name(), X.shared().other, rawequal(X.new(), X.new())"
      ) == "true shared got false")
    // Also after the userdata has been collected.
    try host.run(
      "X.shared() collectgarbage() collectgarbage() assert(X.shared():name() == 'shared')")
    let object = Counted(fixture.counter, name: "swift")
    let value = try host.vm.value(of: object, fixture.type)
    let again = try host.run("return (...)", [value])
    #expect(host.vm.object(in: again[0], fixture.type) === object)
    #expect(host.vm.object(in: again[0], host.taskType) == nil)
  }

  @Test(
    "Objects whose finalizer Lua abandoned are released later, at the latest when the state closes",
    arguments: [false, true])
  func finalizersGivenUp(_ closes: Bool) throws {
    guard !endsByFinalizers else { return }
    let fixture = try Fixture()
    // At the deepest level the C stack has room for the collection but not for a finalizer.
    try fixture.host.run(
      """
      local objects = {}
      for i = 1, 300 do objects[i] = X.new() end
      local function nest()
        table.remove(objects)
        collectgarbage()
        local ok = pcall(nest)
        return ok
      end
      nest()
      objects = nil
      collectgarbage()
      collectgarbage()
      """)
    let shared = 1
    try #require(fixture.counter.living > shared, "every finalizer ran: this tests nothing")
    if closes {
      fixture.host.vm.close()
      #expect(fixture.counter.living == 0)
    } else {
      try fixture.host.run("X.new() collectgarbage()")
      #expect(fixture.counter.living == shared)
    }
  }

  @Test("A wrong self is refused")
  func wrongSelfIsRefused() throws {
    let fixture = try Fixture()
    let text = try fixture.host.text(
      """
      local name = X.new 'a'.name
      local index = debug.getmetatable(X.new()).__index
      local light = debug.upvalueid(function() return name end, 1)
      local bad = 0
      for _, v in ipairs {0, 'x', {}, print, io.stdout, coroutine.create(print), S.spawn(function() end), light, true} do
        local ok, message = pcall(name, v)
        if not ok and message:find 'counted expected, got' then bad = bad + 1 end
        assert(not pcall(index, v, 'other'))
      end
      return bad, select(2, pcall(name)), getmetatable(X.new())
      """)
    #expect(text.hasPrefix("9 "))
    #expect(text.contains("bad argument #1 to 'name' (counted expected, got no value)"))
    #expect(text.hasSuffix("false"))
  }

  @Test("Forged metatables don't fool the check")
  func forgedMetatablesDoNotFoolTheCheck() throws {
    guard !endsByFinalizers else { return }
    let fixture = try Fixture()
    let text = try fixture.host.text(
      """
      local mt = debug.getmetatable(X.new())
      local task = S.spawn(function() end)
      local name = X.new 'real'.name
      local real = X.new 'real'
      local out = io.tmpfile()
      debug.setmetatable(task, mt) debug.setmetatable(out, mt)
      debug.setmetatable(real, getmetatable(io.stdout))
      local results = {pcall(name, task)}, {pcall(name, out)}
      local r = {tostring(pcall(name, task)), tostring(pcall(name, out)), name(real), tostring(mt.__gc)}
      debug.setmetatable(real, mt)
      debug.setmetatable(out, getmetatable(io.stdout)) out:close()
      return table.concat(r, ' ')
      """)
    #expect(text == "false false real nil")
  }

  @Test("An object lives as long as its userdata, whatever a finalizer brings back")
  func resurrected() throws {
    guard !endsByFinalizers else { return }
    let fixture = try Fixture()
    let text = try fixture.host.text(
      """
      local kept
      (function()
        local o = X.new 'back'
        setmetatable({o = o}, {__gc = function(t) kept = t.o end})
      end)()
      for _ = 1, 4 do collectgarbage() end
      return kept:name()
      """)
    #expect(text == "back")
    #expect(fixture.counter.living == 2)
    try fixture.host.vm.collectGarbage()
    #expect(fixture.counter.living == 1)
  }

  @Test("An object is usable in finalizers of the same collection, whichever was created first")
  func droppedTogether() throws {
    guard !endsByFinalizers else { return }
    let fixture = try Fixture()
    let text = try fixture.host.text(
      """
      local names = {}
      local function note(t) names[#names + 1] = t.o:name() end
      for i = 1, 3 do
        local first = setmetatable({}, {__gc = note})
        first.o = X.new('a' .. i)
        setmetatable({o = X.new('b' .. i)}, {__gc = note})
      end
      collectgarbage()
      collectgarbage()
      table.sort(names)
      return table.concat(names, ' ')
      """)
    #expect(text == "a1 a2 a3 b1 b2 b3")
    #expect(fixture.counter.living == 1)
  }

  @Test("A metatable set by a script doesn't keep an object from being released")
  func metatablesTakenAway() throws {
    guard !endsByFinalizers else { return }
    let fixture = try Fixture()
    try fixture.host.run(
      """
      for i = 1, 100 do
        debug.setmetatable(X.new(), nil)
        debug.setmetatable(X.new(), {__gc = function() end})
        debug.setmetatable(X.new(), {__gc = function() error 'in __gc' end})
      end
      """)
    for _ in 0..<3 { try fixture.host.vm.collectGarbage() }
    #expect(fixture.counter.living == 1)
  }

  @Test(
    "An object is released in the round of the collector that frees it",
    arguments: [
      "collectgarbage 'generational'", "collectgarbage 'incremental'",
    ])
  func prompt(_ mode: String) throws {
    guard !endsByFinalizers else { return }
    let fixture = try Fixture()
    try fixture.host.run(
      """
      \(mode)
      for round = 1, 50 do
        for i = 1, 20 do X.new() end
        collectgarbage()
        assert(X.living() == 1)
      end
      -- By itself, too.
      local most = 0
      for i = 1, 200000 do X.new() most = math.max(most, X.living()) end
      assert(most < 50000, most)
      """)
  }

  @Test("Eighty thousand caught errors leak no memory")
  func manyCaughtErrorsLeaveNothing() throws {
    let fixture = try Fixture()
    let vm = fixture.host.vm
    let script = try fixture.host.load(
      """
      local n, object, value = ..., X.new 'o', {}
      local name, fail, raise = object.name, object.fail, object.raise
      local plain = {}
      for i = 1, n do
        assert(not pcall(name, 5))
        assert(not pcall(fail, object))
        assert(select(2, pcall(raise, object, value)) == value)
        assert(not pcall(S.await, plain))
        assert(not pcall(S.sleep, plain))
        assert(not pcall(S.spawn, 5))
        assert(not pcall(coroutine.resume, plain))
        assert(not pcall(coroutine.wrap(fail)))
        object = X.new 'next'
      end
      """)
    // So often that objects are already made in advance.
    _ = try vm.call(script, [.integer(1_000)])
    try vm.collectGarbage()
    let references = vm.referenceCount
    let depth = vm.stackDepth
    let memory = vm.memoryUsed
    _ = try vm.call(script, [.integer(Int64(repetitions(10_000)))])
    try vm.collectGarbage()
    #expect(vm.referenceCount == references)
    #expect(vm.stackDepth == depth)
    #expect(fixture.counter.living == 1)
    #expect(vm.memoryUsed < memory + 20_000)
  }

  @Test("Closing a state releases every object")
  func closingReleasesEverything() throws {
    let counter = Counted.Counter()
    var kept: LuaReference?
    do {
      let host = try TestHost()
      let type = try host.vm.defineObjectType("counted", of: Counted.self, methods: [:])
      try host.install("X", ["new": { call in call.answer(Counted(counter), type) }])
      try host.run(
        "kept = {X.new(), X.new()} co = coroutine.wrap(function() local o = X.new() coroutine.yield() end) co()"
      )
      _ = try host.operation("local o = X.new() S.await(S.spawn(function() coroutine.yield() end))")
      kept = try host.vm.makeTable()
      #expect(counter.living >= 3)
      host.vm.close()
      #expect(counter.living == 0)
    }
    #expect(kept?.isValid == false)
  }

  @Test("Finalizers may call the host while the state closes")
  func finalizersMayCallTheHostWhileClosing() throws {
    let host = try TestHost()
    final class Log {
      var lines: [String] = []
    }
    let log = Log()
    try host.install(
      "X",
      [
        "log": { call in
          log.lines.append(call.bytes(1)?.description ?? "?")
          _ = try call.vm.makeTable(values: [.integer(1)])
          return call.answer()
        }
      ])
    try host.run(
      """
      setmetatable({}, {__gc = function() X.log 'first' end})
      kept = setmetatable({}, {__gc = function()
        X.log 'second' X.log(tostring(pcall(S.sleep, 1)))
        setmetatable({}, {__gc = function() X.log 'never' end})
      end})
      """)
    host.vm.close()
    host.vm.close()
    #expect(log.lines == ["second", "false", "first"])
  }

  @Test("Handles carry their numbers")
  func handlesCarryTheirNumbers() throws {
    let host = try TestHost()
    let type = try host.vm.defineHandleType(
      "handle",
      methods: [:],
      metamethods: ["__len": { call in call.answer(.integer(Int64(call.count))) }])
    try host.install(
      "X",
      [
        "read": { call in
          guard let (slot, generation) = call.handle(1, type) else { return call.answer(.nil) }
          return call.answer([.integer(Int64(slot)), .integer(Int64(bitPattern: generation))])
        }
      ])
    let function = try host.load(
      "local h, a, b = ... Seen.text(table.concat({X.read(h)}, '/') .. a .. b .. tostring(X.read(io.stdout)))"
    )
    let arguments = try host.vm.makeTable(values: [.string("A"), .integer(5)])
    var texts: [String] = []
    try host.install(
      "Seen",
      [
        "text": { call in
          texts.append(call.bytes(1)?.description ?? "")
          return call.answer()
        }
      ])
    let callback = LuaCallback(
      function, bound: (arguments, 2), handle: .first, result: .userdata)
    for slot in 0..<UInt32(500) {
      guard
        case .returned(.nil, mark: 0) = callback.start(
          slot: slot, generation: UInt64(slot) + (1 << 40))
      else {
        Issue.record("it didn't finish")
        return
      }
      #expect(texts.popLast() == "\(slot)/\(UInt64(slot) + (1 << 40))A5nil")
    }
  }

  @Test("Old handles in reused memory aren't mistaken for objects")
  func handlesThatAreGone() throws {
    let fixture = try Fixture()
    let host = fixture.host
    _ = try host.vm.defineHandleType("handle", methods: [:])
    try host.run("kept = {} for i = 1, 500 do kept[i] = X.new(tostring(i)) end")
    let function = try host.load("return")
    let arguments = try host.vm.makeTable()
    let callback = LuaCallback(
      function, bound: (arguments, 0), handle: .first, result: .userdata)
    for round in 0..<20 {
      for slot in 0..<UInt32(500) {
        guard
          case .returned(.nil, mark: 0) = callback.start(
            slot: slot, generation: .max - UInt64(slot))
        else {
          Issue.record("it didn't finish")
          return
        }
      }
      try host.vm.collectGarbage()
      // Arrays of four, whose third values are never written.
      try host.run(
        """
        local tables = {}
        for i = 1, 2000 do
          local t = {}
          t[1] = i t[2] = i t[4] = i
          tables[i] = t
        end
        """)
      try host.vm.collectGarbage()
      #expect(fixture.counter.living == 501, "in round \(round)")
    }
    try host.run("for i = 1, 500 do assert(kept[i]:name() == tostring(i)) end")
  }
}
