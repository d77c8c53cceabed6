import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Running out of memory")
struct AllocationFailureTests {
  /// Uses all that scripts can use.
  static let everything = """
    local MakeOp = flow.op("MakeOp", {
      doc = "Makes a list.", needs = { count = "integer" }, gives = { list = "integer[]" },
      run = function(ctx)
        local list = {}
        for i = 1, ctx:get("count", "integer") do list[i] = i end
        ctx:log("made", #list, list)
        flow.sleep(1)
        ctx:set("list", list)
      end,
    })
    local SquareOp = flow.op("SquareOp", {
      needs = { n = function(v) return math.type(v) == "integer", "an integer" end },
      gives = { square = "integer" }, primary_input = "n", primary_output = "square",
      run = function(ctx, factor)
        if ctx:get("n") == 3 then ctx:fail("no threes", { code = 3 }) end
        flow.sleep(ctx.index * factor)
        ctx:set("square", ctx:get("n") ^ 2 // 1 | 0)
      end,
    })
    local InnerOp = flow.op("InnerOp", function(ctx)
      local run = flow.op("ChildOp", function(child) child:set("name", child.name) end):run { a = 1 }
      assert(run.ok, run.error)
      ctx:set("child", run.data.name .. ctx.attempt .. ctx.run.name)
      ctx:set("long", ("x"):rep(1000))
      if #ctx:get("long") + #ctx:get("child") ~= 1011 then error "a string was lost" end
      pcall(error, setmetatable({}, { __tostring = function() return "lost" end }))
      coroutine.wrap(function() flow.sleep(1) coroutine.yield() end)()
    end)
    local dispatcher = flow.dispatcher {
      input = "list", output = "squares", max_concurrent = 2, allow_failure = true,
      allow_empty = true, failures = "failures", as = "n", collect = "square",
    }
    local inner = flow.new("inner"):needs { list = "table" }:data { extra = {} }:add(InnerOp)
    local all = flow.new("all"):data { count = 5 }:add(MakeOp):add_grouped(SquareOp(0.5), dispatcher)
      :add(inner)
      :will_start(function(run) flow.sleep(1) assert(run.state == "pending") end)
      :did_finish(function(run) run:summary() end)
    local run = all:copy():start { count = 4 }
    run:wait(0.25)
    run:wait()
    if run.error then error(run.error) end
    local failed = flow.op("RaiseOp", function() error({ 1 }) end):run()
    if failed.error.kind ~= "error" then error(failed.error) end
    if not failed.error.cause then error "not enough memory to keep the cause" end
    assert(#run:events() > 20 and #run:summary { time = "iso", durations = true } > 500)
    assert(run.name == "all" and run.id > 0 and run.duration > 3 and run.data.child == "ChildOp1all")
    assert(tostring(run) .. tostring(all) .. tostring(MakeOp) .. tostring(dispatcher))
    assert(select("#", pcall(flow.op)) == 2 and flow.now() > 0)
    for _, failure in ipairs(run.data.failures) do
      -- There was no memory for the record.
      if type(failure) == "string" then error(failure) end
      if failure.error.code ~= 3 then error(failure.error) end
    end
    assert(#run.data.squares == 3 and run.data.failures[1].index == 3)
    local machine = flow.machine {
      name = "machine", start = "a",
      emit = function(result) flow.sleep(1) return result.made and "made" end,
      reduce = function(state, result)
        return flow.continue { count = state.count, made = result.made }
      end,
      flow.step("a", { run = function() return { made = "made" } end,
        flow.on("made", flow.forward "b") }),
      flow.step("b", { run = MakeOp, flow.on("made", flow.forward "c") }),
      flow.step("c", { run = function(state) return { n = state.count } end }),
    }
    local steps = machine:run { count = 1 }
    if steps.error then error(steps.error) end
    assert(#machine:dot() + #machine:mermaid() > 100)
    return "finished"
    """

  /// Makes, continues and settles tasks, more than are made in advance.
  static let tasks = """
    local function increment(value) return value + 1 end
    local context = flow.context()
    local chain = context.task
    for i = 1, 150 do chain = chain:next_on_success(increment) end
    local others = {
      chain:next_on_success(function(value) return "text " .. value end),
      chain:next(function(task) return { task.result } end):finally(function() flow.sleep(1) end),
      chain:next(function(task) return flow.resolved(task) end, { thread = "main" }),
      context.task:next_on_success(function() error("lost", 0) end)
        :next_on_error(function(e) if e.message ~= "lost" then error(e) end return e.message end),
      flow.spawn(function(...) flow.sleep(1) return select("#", ...) end, "a", {}, nil, 4),
    }
    context:set_result(0)
    if not rawequal(chain, chain) or chain:await() ~= 150 then error "a link was lost" end
    local results = flow.when_all_succeed(others):await()
    assert(results[1] == "text 150" and results[2][1] == 150 and rawequal(results[3], chain))
    assert(results[4] == "lost" and results[5] == 4)
    for i = 1, 40 do
      local each = flow.context()
      local sum = 0
      each.task:next_on_success(function(value) sum = value end)
      each:set_result(i)
      assert(sum == i and each.task:await() == i)
    end
    return "finished"
    """

  @Test(
    "Whichever allocation fails, a script gets an error and the host stays usable",
    arguments: [everything, tasks])
  func eachAllocationOfAScript(_ script: String) throws {
    let program = try ScriptProgram()
    let chunk = try program.load(script)
    let check = try program.load("return flow.op('FineOp', function() flow.sleep(1) end):run().ok")
    _ = try program.vm.call(chunk)
    try program.collect()
    let references = program.vm.referenceCount
    var failures = 0
    var n: UInt64 = 0
    // A failure that only costs a log line its text doesn't fail the script.
    var successes = 0
    while successes < 100 {
      n += isThreadSanitized ? 13 : 1
      program.vm.failAllocation(n)
      successes += 1
      do {
        _ = try program.vm.call(chunk)
      } catch {
        failures += 1
        successes = 0
        let report = program.host.report(of: error).description
        #expect(report.contains("not enough memory"), "at allocation \(n): \(report)")
      }
      program.host.runToEnd()
      // The one that was to fail may not have come.
      program.vm.failAllocation(0)
      let fine = try program.vm.call(check)
      guard case .boolean(true)? = fine.first else {
        Issue.record("the host is of no use after allocation \(n) failed")
        return
      }
      #expect(program.vm.stackDepth == 0, "at allocation \(n)")
    }
    #expect(failures > (isThreadSanitized ? 10 : 100))
    try program.collect()
    // The failures that nobody observed are kept, each with its error table.
    let kept = program.host.unobservedFailures().count
    // The pool keeps some idle coroutines, made by the batch; a reference lost in each failure would
    // be a hundred.
    #expect(program.vm.referenceCount <= references + kept + 32)
    #expect(program.loop.pendingRuns.isEmpty)
  }

  @Test("Whichever allocation fails, creating a host throws or succeeds")
  func eachAllocationOfAHost() throws {
    var n: UInt64 = 0
    var failures = 0
    var successes = 0
    while successes < 20 {
      n += isThreadSanitized ? 13 : 1
      var configuration = LuaConfiguration()
      configuration.failingAllocation = n
      do {
        let program = try ScriptProgram(configuration)
        program.vm.failAllocation(0)
        #expect(try program.text("return flow.op('FineOp', print) ~= nil") == "true")
        successes += 1
      } catch {
        failures += 1
        successes = 0
        #expect("\(error)".contains("not enough memory"), "at allocation \(n): \(error)")
      }
    }
    #expect(failures > (isThreadSanitized ? 10 : 100))
  }

  @Test("A memory limit that an op reaches fails only that op")
  func limitInAnOp() throws {
    let program = try ScriptProgram(LuaConfiguration(memoryLimit: 4_000_000))
    let growths = [
      "local t = {} for i = 1, 1e8 do t[i] = i end",
      "local s = 'x' while true do s = s .. s end",
      "local t = {} while true do t[#t + 1] = function() return t end end",
      "local t = {} while true do t[#t + 1] = coroutine.create(print) end",
      "local t = {} while true do t[#t + 1] = flow.op('AnOp', print) end",
      "local t = {} while true do t[#t + 1] = flow.new('aFlow') end",
      "local t = {} while true do t[#t + 1] = flow.op('AnOp', print)('an', 'argument') end",
      "local i = 0 while true do i = i + 1 ctx:set('key', ('x'):rep(1000000 * i)) end",
    ]
    for growth in growths {
      let text = try program.text(
        """
        local run = flow.op("GreedyOp", function(ctx) flow.sleep(1) \(growth) end):run()
        collectgarbage()
        return run.state .. " " .. run.error.message
        """)
      #expect(text.hasPrefix("failed "), "\(growth): \(text)")
      #expect(text.contains("not enough memory"), "\(growth): \(text)")
      #expect(try program.text("return flow.op('FineOp', function() end):run().ok") == "true")
    }
    #expect(program.vm.stackDepth == 0)
  }

  @Test("JSON that memory is too small for is an error that names function and line")
  func jsonWithoutMemory() throws {
    let program = try ScriptProgram(LuaConfiguration(memoryLimit: 8_000_000))
    for call in [
      "json.encode(list)", "json.decode('[' .. ('[],'):rep(200000) .. '1]')",
    ] {
      let text = try program.text(
        """
        local json, list, s = flow.json, {}, ("x"):rep(100000)
        for i = 1, 100 do list[i] = s end
        local ok, problem = pcall(function() return \(call) end)
        return tostring(ok) .. " " .. tostring(problem)
        """)
      #expect(text.hasPrefix("false "), "\(text)")
      #expect(text.contains(":3: \(call.prefix(11)): not enough memory"), "\(text)")
    }
    #expect(program.vm.stackDepth == 0)
  }
}
