@_spi(Scripting) import LuaVM
import Testing

/// States that may execute a number of instructions. Code that evaded the limit would never end.
@Suite("Limits of instructions")
struct InstructionLimitTests {
  private static let limit = 100_000

  private func host(_ limit: Int? = Self.limit) throws -> TestHost {
    try TestHost(LuaConfiguration(instructionLimit: limit))
  }

  /// The error that a body throws.
  private func error(_ body: () throws -> Void) -> LuaError? {
    #expect(throws: LuaError.self, performing: body)
  }

  private func expectExceeded(_ error: LuaError?, _ limit: Int = Self.limit, _ name: String = "") {
    #expect(error?.code == .instructions, "\(name): \(error?.message ?? "no error")")
    #expect(error?.message == "instruction limit of \(limit) exceeded", "\(name)")
  }

  @Test(
    "Code that doesn't end by itself ends in the main chunk, in a call with a deadline and in a coroutine",
    arguments: StoppingTests.hostile.indices.filter {
      !StoppingTests.hostile[$0].body.hasPrefix("debug")
    })
  func endsWhatDoesNotEnd(_ index: Int) throws {
    let (name, body) = StoppingTests.hostile[index]
    let host = try host()
    let depth = host.vm.stackDepth
    let function = try host.load(body)
    expectExceeded(error { _ = try host.vm.call(function) }, Self.limit, name)
    host.vm.instructionLimit = Self.limit
    let later = ContinuousClock.now.advanced(by: .seconds(3600))
    expectExceeded(error { _ = try host.vm.call(function, deadline: later) }, Self.limit, name)
    host.vm.instructionLimit = Self.limit
    let task = try host.operation(body)
    expectExceeded(error { _ = try task.result?.get() }, Self.limit, name)
    host.vm.instructionLimit = Self.limit
    let thread = try LuaCoroutine(function)
    expectExceeded(error { while true { try thread.resume() } }, Self.limit, name)
    host.vm.instructionLimit = nil
    #expect(host.vm.stackDepth == depth)
    #expect(try host.text("local n = 0 for i = 1, 10000 do n = n + i end return n") == "50005000")
  }

  @Test("Code may execute as many instructions as the limit, and hardly more")
  func theNumber() throws {
    let host = try host(nil)
    try host.run("counter = { n = 0 }")
    for limit in [0, 1, 100, 1_000, 10_000, 123_456] {
      try host.run("counter.n = 0")
      // Four instructions a round: GETFIELD, ADDI, SETFIELD, JMP.
      let function = try host.load("local t = counter while true do t.n = t.n + 1 end")
      host.vm.instructionLimit = limit
      expectExceeded(error { _ = try host.vm.call(function) }, limit)
      host.vm.instructionLimit = nil
      let rounds = try #require(Int(try host.text("return counter.n")))
      #expect(rounds * 4 <= limit + 4)
      #expect(rounds * 4 >= limit - 8 - limit / 100, "limit \(limit)")
    }
  }

  @Test("Coroutines of few instructions count", arguments: [0, 20, 220, 1_000])
  func shortCoroutines(_ rounds: Int) throws {
    let host = try host(nil)
    try host.run("counter = { n = 0, coroutines = 0 }")
    let function = try host.load(
      """
      local t = counter
      while true do
        pcall(coroutine.wrap(function()
          t.coroutines = t.coroutines + 1
          for i = 1, \(rounds) do t.n = t.n + 1 end
        end))
      end
      """)
    host.vm.instructionLimit = 1_000_000
    expectExceeded(error { _ = try host.vm.call(function) }, 1_000_000)
    host.vm.instructionLimit = nil
    let executed = try #require(Int(try host.text("return counter.n")))
    let coroutines = try #require(Int(try host.text("return counter.coroutines")))
    #expect(executed * 4 + coroutines * 10 <= 1_000_000)
    #expect(coroutines > 100)
    if rounds >= 220 { #expect(executed * 4 > 600_000) }
  }

  @Test("3,000 coroutines of 900 instructions need more than a million")
  func manyCoroutines() throws {
    let source = """
      for i = 1, 3000 do coroutine.wrap(function() for j = 1, 890 do end end)() end
      return "all"
      """
    let host = try host(1_000_000)
    expectExceeded(error { _ = try host.run(source) }, 1_000_000)
    let enough = try self.host(5_000_000)
    #expect(try enough.text(source) == "all")
  }

  @Test("A limit that is large enough changes nothing")
  func aLargeLimit() throws {
    let source = """
      local out = {}
      local function add(...) out[#out + 1] = table.concat({ ... }, ",") end
      for i in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do add(i) end
      add(tostring(pcall(error, "x")), select(2, pcall(error, "x", 0)))
      add(select(2, xpcall(error, function(m) return m .. "!" end, "y", 0)))
      local t = { 3, 1, 2 }
      table.sort(t, function(a, b) return a < b end)
      add(table.unpack(t))
      add((("abc"):gsub(".", function(c) return c:upper() end)))
      do local c <close> = setmetatable({}, { __close = function() add "closed" end }) end
      local co = coroutine.create(function()
        local c <close> = setmetatable({}, { __close = function() add "cut" end })
        coroutine.yield()
      end)
      coroutine.resume(co)
      add(tostring(coroutine.close(co)), coroutine.status(co))
      S.sleep(1)
      local n = 0
      for i = 1, 100000 do n = n + i end
      add(n)
      return table.concat(out, " ")
      """
    let plain = try host(nil)
    let limited = try host(100_000_000)
    #expect(try limited.text(source) == plain.text(source))
    #expect(try limited.operationText(source) == plain.operationText(source))
    for _ in 0..<1000 { #expect(try limited.operationText("S.sleep(0.01) return 1") == "1") }
  }

  @Test("A limit that is set again is a new one, and without one everything is as before")
  func refill() throws {
    let host = try host(1_000)
    expectExceeded(error { try host.run("while true do end") }, 1_000)
    expectExceeded(error { try host.run("return 1") }, 1_000)
    host.vm.instructionLimit = 2_000
    #expect(try host.text("local n = 0 for i = 1, 100 do n = n + 1 end return n") == "100")
    expectExceeded(error { try host.run("while true do end") }, 2_000)
    host.vm.instructionLimit = nil
    #expect(
      try host.text(
        """
        local n = 0
        debug.sethook(function() n = n + 1 end, "", 100)
        for i = 1, 10000 do end
        debug.sethook()
        return n >= 99, debug.gethook()
        """) == "true nil")
    host.vm.instructionLimit = 1_000
    expectExceeded(error { try host.run("while true do end") }, 1_000)
  }

  @Test("A limit that is set while code executes holds for it, also where it had a hook")
  func setWithinCode() throws {
    for prefix in ["", "debug.sethook(function() end, '', 50) "] {
      let host = try host(nil)
      try host.install(
        "T",
        [
          "limit": { [unowned vm = host.vm] call in
            vm.instructionLimit = 1_000
            return call.answer()
          }
        ])
      for body in [
        "T.limit() while true do end",
        "coroutine.wrap(function() coroutine.wrap(T.limit)() while true do end end)()",
        "coroutine.wrap(T.limit)() while true do pcall(function() while true do end end) end",
        "coroutine.wrap(function() T.limit() end)() while true do end",
      ] {
        expectExceeded(error { try host.run(prefix + body) }, 1_000, body)
        host.vm.instructionLimit = nil
        let task = try host.operation(prefix + body)
        expectExceeded(error { _ = try task.result?.get() }, 1_000, body)
        host.vm.instructionLimit = nil
      }
    }
  }

  @Test(
    "The `__close`s of a coroutine in which the limit was reached don't run, also after a new limit"
  )
  func closesOfCutCoroutines() throws {
    let host = try host(10_000)
    let source = """
      closes = 0
      co = coroutine.create(function()
        local c <close> = setmetatable({}, { __close = function() closes = closes + 1 while true do end end })
        table.sort({ 3, 2, 1 }, function() while true do end end)
      end)
      coroutine.resume(co)
      while true do end
      """
    expectExceeded(error { try host.run(source) }, 10_000)
    host.vm.instructionLimit = 10_000
    #expect(
      try host.text(
        """
        for i = 1, 50 do coroutine.close(co) end
        return coroutine.status(co), coroutine.close(co), closes
        """
      ).hasPrefix("dead false"))
    // Those of other coroutines do.
    #expect(
      try host.text(
        """
        pcall(coroutine.wrap(function()
          local c <close> = setmetatable({}, { __close = function() closes = closes + 1 end })
          error "x"
        end))
        return closes
        """) == "1")
  }

  @Test("An operation that waits continues to count")
  func waiting() throws {
    let host = try host(20_000)
    let task = try host.operation(
      "while true do S.sleep(0.1) coroutine.wrap(function() S.sleep(0.1) end)() end")
    expectExceeded(error { _ = try task.result?.get() }, 20_000)
  }

  @Test("The error passes through functions of Swift as it is, and no message handler is called")
  func throughSwift() throws {
    let host = try host(nil)
    var caught: [LuaError.Code] = []
    try host.install(
      "T",
      [
        "call": { [unowned vm = host.vm] call in
          guard case .reference(let function) = try call.value(1) else { return call.answer() }
          do {
            _ = try vm.call(function)
          } catch let error as LuaError {
            caught.append(error.code)
            throw error
          }
          return call.answer()
        }
      ])
    let function = try host.load(
      """
      handled = false
      local function handle() handled = true end
      xpcall(T.call, handle, function() xpcall(T.call, handle, function() while true do end end) end)
      """)
    host.vm.instructionLimit = 1_000
    expectExceeded(error { _ = try host.vm.call(function) }, 1_000)
    #expect(caught == [.instructions, .instructions])
    host.vm.instructionLimit = nil
    #expect(try host.text("return handled") == "false")
  }

  @Test("Requests of other threads don't stop the count")
  func requests() throws {
    let host = try host(10_000)
    try host.install(
      "T",
      [
        "attend": { [unowned vm = host.vm] call in
          vm.attention.call()
          return call.answer()
        }
      ])
    expectExceeded(error { try host.run("while true do T.attend() end") }, 10_000)
    host.vm.instructionLimit = 10_000
    let task = try host.operation("while true do pcall(T.attend) end")
    expectExceeded(error { _ = try task.result?.get() }, 10_000)
  }

  @Test("A script can't replace the hook that counts")
  func hooks() throws {
    let host = try host()
    let message =
      "debug.sethook isn't allowed by the host of the script, which limits its instructions"
    #expect(
      try host.text(
        """
        return select(2, pcall(debug.sethook)), select(2, pcall(debug.sethook, print, "l")),
          select(2, pcall(debug.sethook, coroutine.create(print), print, "l"))
        """) == [message, message, message].joined(separator: " "))
  }

  @Test("Other errors keep their codes, also lack of memory")
  func otherErrors() throws {
    let host = try TestHost(
      LuaConfiguration(memoryLimit: 8_000_000, instructionLimit: 100_000_000))
    #expect(error { try host.run("error 'x'") }?.code == .runtime)
    #expect(error { try host.run("return ('x'):rep(1 << 30)") }?.code == .memory)
    #expect(error { try host.run("error('not enough memory', 0)") }?.code == .memory)
  }

  @Test("Many nested pcalls of a large state end soon")
  func nestedCalls() throws {
    let host = try host(20_000_000)
    let begin = ContinuousClock.now
    expectExceeded(
      error {
        try host.run(
          """
          garbage = {}
          for i = 1, 300000 do garbage[i] = { i } end
          local function nest(n) while true do if n == 0 then while true do end end pcall(nest, n - 1) end end
          nest(150)
          """)
      }, 20_000_000)
    // A collection for each of them would take 20 s.
    #expect(ContinuousClock.now - begin < .seconds(10))
  }

  @Test("A deadline stops code within its limit, and the limit holds afterwards")
  func deadlines() throws {
    let host = try host(1 << 50)
    for body in ["while true do end", "while true do pcall(function() while true do end end) end"] {
      let function = try host.load(body)
      let stopped = error {
        _ = try host.vm.call(function, deadline: .now.advanced(by: .milliseconds(20)))
      }
      #expect(stopped?.code == .timeout)
      let task = try host.operation(body, deadline: -20_000_000, grace: 0)
      #expect(task.isStopped)
    }
    #expect(
      try host.operationText(
        """
        local c <close> = setmetatable({}, { __close = function() for i = 1, 1000 do end end })
        return "usable"
        """) == "usable")
    host.vm.instructionLimit = 10_000
    expectExceeded(error { try host.run("while true do end") }, 10_000)
  }
}
