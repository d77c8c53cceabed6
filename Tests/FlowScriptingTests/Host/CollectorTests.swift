import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("The garbage collector at any moment")
struct CollectorTests {
  @Test(
    "Collecting in every callback changes nothing",
    arguments: [
      "collectgarbage('incremental', 1, 400)", "collectgarbage('generational', 1, 1)",
      "collectgarbage('incremental') collectgarbage('setpause', 0)", "collectgarbage('stop')",
    ])
  func stress(_ mode: String) throws {
    let program = try ScriptProgram()
    let text = try program.text(
      """
      \(mode)
      local collect = collectgarbage
      -- A table whose finalizer uses the engine, then another one, and so on.
      local finalized = 0
      local function litter()
        setmetatable({}, { __gc = function()
          finalized = finalized + 1
          flow.op("GcOp", function() end)
          flow.new("gc"):data { t = {} }:copy()
          if finalized < 2000 then litter() end
        end })
      end
      litter()
      local CollectOp = flow.op("CollectOp", {
        needs = { n = function(v) collect() return true end }, gives = { m = "any" },
        run = function(ctx, a, b, c)
          collect()
          ctx:log(setmetatable({}, { __tostring = function() collect() return "told" end }))
          ctx:set("m", { ctx:get("n"), a, b, c, n = 4 })
          flow.sleep(1)
          collect()
          local run = flow.op("InnerOp", function(inner) collect() inner:set("t", {}) end):run()
          collect()
          assert(type(run.data.t) == "table")
          if ctx.index == 2 then ctx:fail(setmetatable({}, { __tostring = function() collect() return "two" end })) end
        end,
      })
      local function once()
        local run = flow.new("stress"):data { list = { 1, 2, 3 } }
          :will_start(function() collect() flow.sleep(1) collect() end)
          :add_grouped(CollectOp("x", nil, {}), { input = "list", output = "out", as = "n", collect = "m",
            allow_failure = true, failures = "failures" })
          :did_finish(function(run) collect() return run:summary() end)
          :start()
        collect()
        run:wait(0.5)
        run:wait()
        collect()
        assert(run.ok, run.error)
        assert(#run.data.out == 2 and run.data.out[2][1] == 3 and run.data.out[2][2] == "x")
        assert(type(run.data.out[2][4]) == "table")
        assert(run.data.failures[1].error.message == "two")
      end
      for _ = 1, 10 do once() end
      collectgarbage("restart")
      return "fine"
      """)
    #expect(text == "fine")
    #expect(program.vm.stackDepth == 0)
  }

  @Test("A callback outlives the coroutine that registered it")
  func collectedCoroutine() throws {
    let program = try ScriptProgram()
    let text = try program.text(
      """
      local called = {}
      local blueprint
      coroutine.wrap(function()
        local name = "upvalue"
        local AnOp = flow.op("AnOp", function(ctx) flow.sleep(1) called[#called + 1] = name end)
        blueprint = flow.new("kept"):add(AnOp)
          :will_start(function() called[#called + 1] = "start " .. name end)
          :did_finish(function() called[#called + 1] = "finish " .. name end)
        coroutine.yield()
      end)()
      for _ = 1, 3 do collectgarbage() end
      blueprint:run()
      return table.concat(called, ", ")
      """)
    #expect(text == "start upvalue, upvalue, finish upvalue")
  }

  @Test("An object that a finalizer resurrects still works")
  func resurrected() throws {
    let program = try ScriptProgram()
    let text = try program.text(
      """
      local kept
      do
        local holder = setmetatable({ op = flow.op("AnOp", print), run = flow.new("f"):run() },
          { __gc = function(self) kept = self end })
      end
      for _ = 1, 3 do collectgarbage() end
      return kept.op.name .. " " .. kept.run.name
      """)
    #expect(text == "AnOp f")
  }

  @Test("A hundred thousand ops leak no memory")
  func manyOps() throws {
    let program = try ScriptProgram()
    let chunk = try program.load(
      """
      local CountOp = flow.op("CountOp", function(ctx, n) ctx:set("n", n) end)
      local many = flow.new("many")
      for _ = 1, 1000 do many:add(CountOp(1)) end
      for _ = 1, ... do assert(many:run().ok) end
      for _ = 1, ... * 10 do flow.op("DroppedOp", function() end):run() end
      """)
    _ = try program.vm.call(chunk, [.integer(10)])
    try program.collect()
    let references = program.vm.referenceCount
    let memory = program.vm.memoryUsed
    _ = try program.vm.call(chunk, [.integer(90)])
    try program.collect()
    #expect(program.vm.referenceCount <= references + 4)
    // Tables that have grown to the next power of two stay so: half a byte for each op.
    #expect(program.vm.memoryUsed < memory + 50_000)
    #expect(program.loop.pendingRuns.isEmpty)
    #expect(program.vm.stackDepth == 0)
  }
}
