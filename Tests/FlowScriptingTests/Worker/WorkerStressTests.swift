import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

/// Workers in numbers, for the thread sanitizer above all.
@Suite("Workers under stress", .serialized)
struct WorkerStressTests {
  /// A program with workers on the real clock.
  private func program(workers: Int) throws -> ScriptHost {
    let host = try ScriptHost(vm: LuaVM())
    host.workerLimit = workers
    try host.vm.setGlobal("flow", .reference(host.module))
    return host
  }

  private func run(_ host: ScriptHost, _ source: String) throws {
    _ = try host.vm.call(try host.vm.load(ByteString(source), name: "script.lua"))
  }

  private static let definitions = """
    local flow = require "flow"
    W = { thread = "worker" }
    ItemOp = flow.op("ItemOp", { needs = { n = "any" }, gives = { m = "any" }, thread = "worker",
      run = function(ctx)
        local n = ctx:get("n")
        if n % 13 == 0 then flow.sleep(0.0003) end
        if n % 29 == 0 then ctx:log("at", n) end
        if n % 31 == 0 then flow.spawn(function() flow.sleep(0.0001) end):await() end
        ctx:set("m", { n, tostring(n) })
      end })
    LoopOp = flow.op("LoopOp", { thread = "worker", run = function() while true do end end })
    SleepOp = flow.op("SleepOp", { thread = "worker", run = function() flow.sleep(100) end })
    ns = {}
    for i = 1, 300 do ns[i] = i end
    function group(limit)
      return flow.new("g"):data { ns = ns }
        :add_grouped(ItemOp, { input = "ns", output = "out", max_concurrent = limit })
    end
    """

  @Test("Groups, calls and cancels at the same time end as they should")
  func mixed() throws {
    let host = try program(workers: 4)
    defer { host.close() }
    try run(host, Self.definitions)
    for round in 0..<(isThreadSanitized ? 3 : 10) {
      try run(
        host,
        """
        local groups, calls, stopped = {}, {}, {}
        for i = 1, 4 do groups[i] = group(i * 2 - 1):start() end
        for i = 1, 40 do
          calls[i] = flow.resolved({ i }):next_on_success(function(t) return t[1] * 2 end, W)
        end
        for i = 1, 3 do stopped[i] = (i % 2 == 0 and LoopOp or SleepOp):start() end
        stopped[4] = group(3):start()
        flow.sleep(0.002 * \(round % 3))
        for _, run in ipairs(stopped) do run:cancel("enough") end
        for i, run in ipairs(groups) do
          run:wait()
          assert(run.ok, run.error)
          for k = 1, #ns do assert(run.data.out[k][1] == k and run.data.out[k][2] == tostring(k)) end
        end
        for i, call in ipairs(calls) do assert(call:await() == i * 2) end
        for i = 1, 3 do
          stopped[i]:wait()
          assert(stopped[i].state == "cancelled")
        end
        stopped[4]:wait()
        """)
    }
    #expect(host.unobservedFailures().isEmpty)
  }

  @Test("A host is closed while its workers are busy, asleep, or only just started")
  func closing() throws {
    for round in 0..<(isThreadSanitized ? 20 : 100) {
      let host = try program(workers: 3)
      try run(host, Self.definitions)
      try run(
        host,
        """
        LoopOp:start() SleepOp:start() group(5):start()
        if \(round) % 4 > 0 then flow.sleep(0.001 * (\(round) % 4)) end
        """)
      host.close()
      host.loop.shutdown()
    }
  }

  @Test("A stop reaches a busy op however early it comes")
  func earlyStops() throws {
    let host = try program(workers: 2)
    defer { host.close() }
    host.loop.cleanupGrace = .seconds(0.1)
    try run(host, Self.definitions)
    try run(
      host,
      """
      -- A worker that a stop doesn't reach is replaced, by one with another state.
      local states, count = {}, 0
      local StateOp = flow.op("StateOp", { thread = "worker", gives = { state = "string" },
        run = function(ctx) ctx:set("state", ("%p"):format(_G)) end })
      local function look()
        for _ = 1, 20 do
          local state = StateOp:run().data.state
          if not states[state] then states[state], count = true, count + 1 end
        end
      end
      -- Each op's function is sent again, with a table that takes a while to decode.
      local values = {}
      for i = 1, 3000 do values[i] = { i } end
      for n = 1, \(isThreadSanitized ? 20 : 150) do
        local AnotherLoopOp = flow.op("AnotherLoopOp", { thread = "worker",
          run = function() while values do end end })
        local run = AnotherLoopOp:start()
        if n % 3 > 0 then flow.sleep(n % 50 * 5e-5) end
        run:cancel("enough")
        run:wait()
        assert(run.cancelled, run.error)
        look()
      end
      assert(count <= 2, count)
      """)
  }

  @Test("Timeouts stop busy workers again and again, and retries continue in them")
  func timeouts() throws {
    let host = try program(workers: 2)
    defer { host.close() }
    try run(host, Self.definitions)
    try run(
      host,
      """
      local RetryOp = flow.op("RetryOp", { thread = "worker", timeout = 0.005, retry = 3,
        needs = { n = "integer" }, gives = { m = "integer" },
        run = function(ctx)
          if ctx.attempt < 2 then while true do pcall(error) end end
          ctx:set("m", ctx.attempt)
        end })
      local few = {}
      for i = 1, \(isThreadSanitized ? 6 : 20) do few[i] = i end
      local run = flow.new("g"):data { ns = few }
        :add_grouped(RetryOp:with { timeout = \(isThreadSanitized ? "0.2" : "0.02") },
          { input = "ns", output = "out", max_concurrent = 4 }):run()
      assert(run.ok, run.error)
      for i = 1, #few do assert(run.data.out[i] >= 2) end
      """)
  }

  @Test("A worker without memory fails only its own work")
  func memory() throws {
    let host = try ScriptHost(vm: LuaVM(configuration: LuaConfiguration(memoryLimit: 40 << 20)))
    host.workerLimit = 1
    defer { host.close() }
    try run(
      host,
      """
      local flow = require "flow"
      for _, body in ipairs {
        function() return ("x"):rep(1 << 30) end,
        function() local t = {} for i = 1, 1e9 do t[i] = { i } end end,
      } do
        local run = flow.op("BigOp", { thread = "worker", run = body }):run()
        assert(run.error.message:find("not enough memory"), run.error.message)
        assert(run.error.kind == "memory", run.error.kind)
      end
      local run = flow.new("g"):data { ns = { 1, 30, 3 } }
        :add_grouped(flow.op("RepOp", { thread = "worker", primary_input = "n", primary_output = "m",
          run = function(ctx) ctx:set("m", #("x"):rep(ctx:get("n") << 20)) end }),
          { input = "ns", output = "out", allow_failure = true, failures = "bad" }):run()
      assert(run.ok and #run.data.out == 2 and run.data.bad[1].index == 2, run.error)
      """)
  }

  @Test("Without any worker an op and a group fail with the reason")
  func none() throws {
    let host = try program(workers: 2)
    defer { host.close() }
    // The workers get it, too.
    host.vm.memoryLimit = nil
    host.workerMemoryLimit = 1000
    try run(
      host,
      """
      local flow = require "flow"
      local NoOp = flow.op("NoOp", { thread = "worker", primary_input = "n", run = function() end })
      local run = NoOp:run()
      assert(run.error.message:find("no worker could be made: not enough memory"), run.error.message)
      assert(run.error.kind == "memory", run.error.kind)
      run = flow.new("g"):data { ns = { 1, 2, 3 } }:add_grouped(NoOp, { input = "ns" }):run()
      assert(run.error.message:find("no worker could be made"), run.error.message)
      """)
  }
}
