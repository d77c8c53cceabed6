@_spi(Scripting) import LuaVM
import Testing

/// Every context in which a script can wait: in the main chunk, in an operation, and in a coroutine
/// of the script in either.
@Suite("Waits in Lua code")
struct WaitingTests {
  static let contexts: [(name: String, body: String, expected: String)] = [
    ("plain", "return w(1)", "1"),
    ("pcall", "local ok, v = pcall(w, 2) return v", "2"),
    (
      "an error behind a wait",
      "local ok, v = pcall(function() w(1) error('boom', 0) end) return v", "boom"
    ),
    ("__index", "return setmetatable({}, {__index = function() return w(3) end}).x", "3"),
    ("__add", "return setmetatable({}, {__add = function() return w(4) end}) + 1", "4"),
    ("__lt", "return setmetatable({}, {__lt = function() return w(true) end}) < {}", "true"),
    ("__eq", "return setmetatable({}, {__eq = function() return w(true) end}) == {}", "true"),
    ("__len", "return #setmetatable({}, {__len = function() return w(5) end})", "5"),
    ("__concat", "return setmetatable({}, {__concat = function() return w('5') end}) .. ''", "5"),
    ("__call", "return setmetatable({}, {__call = function() return w(6) end})()", "6"),
    (
      "__close",
      "local r do local c <close> = setmetatable({}, {__close = function() r = w(7) end}) end return r",
      "7"
    ),
    (
      "__newindex",
      "local r setmetatable({}, {__newindex = function() r = w(7) end}).x = 1 return r", "7"
    ),
    (
      "iterator",
      """
      local n = 0
      for i in function(_, i) i = (i or 0) + 1 w(1) if i < 4 then return i end end do n = n + i end
      return n
      """, "6"
    ),
    (
      "wrap as iterator",
      """
      local n = 0
      for i in coroutine.wrap(function() for i = 1, 3 do w(1) coroutine.yield(i) end end) do
        n = n + i
      end
      return n
      """, "6"
    ),
    (
      "nested wraps and pcall",
      """
      local g = coroutine.wrap(function()
        local h = coroutine.wrap(function() pcall(w, 1) coroutine.yield(w(8)) end)
        coroutine.yield((select(2, pcall(h))))
      end)
      return g()
      """, "8"
    ),
    (
      "sort",
      "local t = {3, 1, 2} table.sort(t, function(a, b) w(1) return a < b end) return table.concat(t)",
      "123"
    ),
    ("gsub", "return (('abc'):gsub('.', function(c) return w(c:upper()) end))", "ABC"),
    (
      "tostring", "return tostring(setmetatable({}, {__tostring = function() return w('9') end}))",
      "9"
    ),
    (
      "load with a reader",
      "local n = 0 return load(function() n = n + 1 w(1) return n == 1 and 'return 10' or nil end)()",
      "10"
    ),
    ("require", "package.loaded.zz = nil return (require 'zz')", "11"),
    (
      "message handler",
      "local _, m = xpcall(function() error('x', 0) end, function(m) return w(m .. 'h') end) return m",
      "xh"
    ),
    (
      "unpack with __index",
      "return (table.unpack(setmetatable({}, {__index = function() return w(12) end}), 1, 1))", "12"
    ),
    (
      "pairs with __pairs",
      "for k in pairs(setmetatable({}, {__pairs = function() return w(next), {x = 1} end})) do return k end",
      "x"
    ),
    (
      "dofile",
      """
      local f = os.tmpname() local h = io.open(f, 'w') h:write('return w(13)') h:close()
      local r = dofile(f) os.remove(f) return r
      """, "13"
    ),
  ]

  static let prelude = """
    w = function(v) S.sleep(0.001) return v end
    package.preload.zz = function() return w(11) end
    """

  @Test("Code can wait in every context", arguments: contexts.indices)
  func waitsInEveryContext(_ index: Int) throws {
    let (name, body, expected) = Self.contexts[index]
    let host = try TestHost()
    try host.run(Self.prelude)
    let function = "local function f() \(body) end "
    let depth = host.vm.stackDepth
    #expect(try host.text(function + "return f()") == expected, "\(name), main chunk")
    #expect(try host.operationText(function + "return f()") == expected, "\(name), operation")
    #expect(
      try host.text(
        function + "local w = coroutine.wrap(function() coroutine.yield(f()) end) return w()")
        == expected, "\(name), coroutine in the main chunk")
    #expect(
      try host.operationText(
        function + """
          local w = coroutine.wrap(function() for i = 1, 2 do coroutine.yield(f()) end end)
          local x, y = w(), w() assert(x == y) return x
          """) == expected, "\(name), coroutine in an operation")
    #expect(host.vm.stackDepth == depth)
  }

  @Test("A wait in a finalizer is an error")
  func waitsInNoFinalizer() throws {
    let host = try TestHost()
    try host.run(Self.prelude)
    let script = """
      local result
      setmetatable({}, {__gc = function() result = table.pack(pcall(S.sleep, 1)) end})
      collectgarbage() collectgarbage()
      return tostring(result[1]) .. ' ' .. tostring(result[2])
      """
    let expected = "false script:2: attempt to await in a finalizer"
    #expect(try host.text(script) == expected)
    #expect(try host.operationText(script) == expected)
    #expect(host.scheduler.time == 0)
    // Also not from a coroutine that the finalizer makes.
    let nested = script.replacing("pcall(S.sleep, 1)", with: "pcall(coroutine.wrap(S.sleep), 1)")
    #expect(try host.operationText(nested).hasSuffix("in a finalizer"))
  }

  @Test("Waits of several coroutines overlap")
  func waitingDoesNotSerialize() throws {
    let host = try TestHost()
    let text = try host.text(
      """
      local tasks = {}
      for i = 1, 100 do tasks[i] = S.spawn(function() S.sleep(1) return i end) end
      local sum = 0
      for i = 1, 100 do sum = sum + S.await(tasks[i]) end
      return sum
      """)
    #expect(text == "5050")
    #expect(host.scheduler.time == 1)
  }

  @Test("Twenty thousand nested generators can be parked")
  func parksTwentyThousandNestedGenerators() throws {
    let host = try TestHost()
    let text = try host.text(
      """
      local N, tasks, sum = ..., {}, 0
      for i = 1, N do
        tasks[i] = S.spawn(function()
          local g = coroutine.wrap(function()
            local h = coroutine.wrap(function() S.sleep(0.05) coroutine.yield(i) end)
            coroutine.yield(h())
          end)
          return g()
        end)
      end
      for i = 1, N do sum = sum + S.await(tasks[i]) end
      return sum == N * (N + 1) // 2
      """, [.integer(Int64(repetitions(20_000)))])
    #expect(text == "true")
    // The list of tasks went with the script; what is left are the pool's coroutines.
    try host.vm.collectGarbage()
    #expect(host.vm.referenceCount < 20_000 + 100)
  }

  @Test("A parked coroutine can't be resumed or closed by a script")
  func parkedCoroutineCannotBeMisused() throws {
    let host = try TestHost()
    let text = try host.text(
      """
      local shared = coroutine.create(function() S.sleep(0.02) coroutine.yield 'one' return 'two' end)
      local a = S.spawn(function() return (select(2, coroutine.resume(shared))) end)
      local b = S.spawn(function()
        return table.concat({
          coroutine.status(shared), tostring(select(2, coroutine.resume(shared, 1, 2))),
          tostring(select(2, pcall(coroutine.close, shared)))}, ', ')
      end)
      return S.await(b), S.await(a), coroutine.status(shared), select(2, coroutine.resume(shared))
      """)
    #expect(
      text
        == "normal, cannot resume non-suspended coroutine, cannot close a normal coroutine"
        + " one suspended two")
  }

  @Test("A script can't resume a parked operation")
  func parkedOperationCannotBeResumedByAScript() throws {
    let host = try TestHost()
    let text = try host.text(
      """
      local own
      local task = S.spawn(function() own = coroutine.running() S.sleep(1) return 'done' end)
      local results = table.pack(coroutine.resume(own, 'forged'))
      local status = coroutine.status(own)
      local closed = pcall(coroutine.close, own)
      return results[1], results[2], status, closed, S.await(task)
      """)
    #expect(text == "false cannot resume non-suspended coroutine normal false done")
  }

  @Test("A waiting generator keeps its own yields apart")
  func waitingGeneratorKeepsTheScriptsYieldsApart() throws {
    let host = try TestHost()
    let script = """
      local seen = {}
      local co = coroutine.create(function(a)
        seen[#seen + 1] = a
        S.sleep(1)
        seen[#seen + 1] = coroutine.yield('first', nil, 3)
        S.sleep(1)
        seen[#seen + 1] = coroutine.yield()
        S.sleep(1)
        return 'last'
      end)
      local function show(...) return select('#', ...) .. ':' .. tostring((select(2, ...))) end
      local all = show(coroutine.resume(co, 'x')) .. ' ' .. show(coroutine.resume(co, 'y')) .. ' '
        .. show(coroutine.resume(co, 'z')) .. ' ' .. show(coroutine.resume(co)) .. ' '
      return all .. table.concat(seen)
      """
    let expected = "4:first 1:nil 2:last 2:cannot resume dead coroutine xyz"
    #expect(try host.text(script) == expected)
    #expect(try host.operationText(script) == expected)
  }

  @Test("A second pump is refused")
  func secondPumpIsRefused() throws {
    let host = try TestHost()
    let text = try host.text(
      """
      local function sorter()
        local t = {2, 1}
        table.sort(t, function(x, y) S.sleep(0.05) return x < y end)
        return t[1]
      end
      local task = S.spawn(function() S.sleep(0.01) return sorter() end)
      local ok, message = pcall(S.await, task)
      return tostring(ok) .. ' ' .. message .. ' ' .. sorter()
      """)
    #expect(text.contains("attempt to await across a C-call boundary"))
    #expect(text.hasPrefix("false ") && text.hasSuffix(" 1"))
  }

  @Test("An unknown resumer never sees a wait")
  func anUnknownResumerNeverSeesAWait() throws {
    let host = try TestHost()
    guard try host.text("return (pcall(require, 'cqueues'))") == "true" else { return }
    let text = try host.text(
      """
      local cq = require 'cqueues'
      local q, order = cq.new(), {}
      q:wrap(function()
        order[#order + 1] = 'a1' S.sleep(0.02) order[#order + 1] = 'a2'
        cq.sleep(0.001) order[#order + 1] = 'a3'
      end)
      q:wrap(function() order[#order + 1] = 'b1' cq.sleep(0.001) order[#order + 1] = 'b2' end)
      assert(q:loop())
      table.sort(order)
      return table.concat(order, ' ')
      """)
    #expect(text == "a1 a2 a3 b1 b2")
  }

  @Test("A stalled wait fails")
  func stalledWaitFails() throws {
    let host = try TestHost()
    try host.install("never", ["wait": { call in try call.wait(LuaWait()) }])
    #expect(try host.text("return select(2, pcall(never.wait))").hasSuffix("stalled"))
    // Without a scheduler as well.
    host.vm.scheduler = nil
    #expect(
      try host.text("return select(2, pcall(never.wait))").hasSuffix("without a scheduler"))
  }

  @Test("A wait that is ready continues at once")
  func readyWaitGoesOnAtOnce() throws {
    let host = try TestHost()
    try host.install(
      "ready",
      [
        "wait": { call in
          let wait = LuaWait()
          wait.ready()
          return try call.wait(wait)
        },
        "fail": { call in
          let wait = LuaWait()
          wait.fail(TestProblem("early"))
          return try call.wait(wait)
        },
      ])
    #expect(try host.operationText("return select('#', ready.wait())") == "0")
    #expect(try host.operationText("return tostring(select(2, pcall(ready.fail)))") == "early")
  }

  @Test("A cancelled operation cleans up its inner coroutines")
  func cancelledOperationCleansUpItsInnerCoroutines() throws {
    let host = try TestHost()
    let counter = Counted.Counter()
    try host.run(
      """
      log = {}
      function closing(name)
        return setmetatable({}, {__close = function() log[#log + 1] = name end})
      end
      """)
    final class Forever: LuaWait {
      let held: Counted
      init(_ held: Counted) { self.held = held }
    }
    try host.install(
      "forever", ["wait": { call in try call.wait(Forever(Counted(counter))) }])
    let outcome = try host.vm.start(
      host.load(
        """
        local a <close> = closing 'outer'
        local inner = coroutine.wrap(function()
          local b <close> = closing 'middle'
          return (select(2, coroutine.resume(coroutine.create(function()
            local c <close> = closing 'inner'
            forever.wait()
          end))))
        end)
        inner()
        """))
    let coroutine = try #require(parked(outcome))
    #expect(host.vm.parkedWait() != nil)
    #expect(counter.living == 1)
    host.vm.release(coroutine, finished: false)
    #expect(counter.living == 0)
    #expect(try host.text("return table.concat(log, ' ')") == "inner middle outer")
  }

  @Test("A state isn't made where coroutines are resumed without its knowledge")
  func foreignResume() throws {
    var configuration = LuaConfiguration()
    configuration.withheld = .interposedResume
    let error = try #require(throws: LuaError.self) { try LuaVM(configuration: configuration) }
    #expect(error.code == .library)
    #expect(error.message.description.contains("link the shared liblua5.4"))
    _ = try LuaVM()
  }
}
