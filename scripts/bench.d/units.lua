-- The cost of a unit of work.
--
--   units.lua KIND COUNT [RUNS]
--
-- Prints the time that passes and the CPU time of each of COUNT units, in nanoseconds, and the most
-- memory that the process has used, in bytes. Preparations aren't timed. RUNS repeats the
-- work: in the difference of two numbers of runs there is neither the preparation nor the first
-- time.
local flow = require "flow"
local kind, count, runs = arg[1], tonumber(arg[2]), tonumber(arg[3] or 1)

-- Each prepares so many units, and returns a function that executes them, and the seconds in which
-- nothing happens.
local kinds = {}

local function nothing() end
local function numbers(n)
  local list = {}
  for i = 1, n do list[i] = i end
  return list
end

-- A function that runs a flow to its end, which must be a success.
local function running(blueprint)
  return function()
    local run = blueprint:run()
    assert(run.ok, run.error)
    return run
  end
end

local function chain(n, op, data)
  local blueprint = flow.new("chain"):data(data or {})
  for _ = 1, n do blueprint:add(op) end
  return running(blueprint)
end

local function group(list, op, options)
  options.input = "list"
  return running(flow.new("group"):data { list = list }:add_grouped(op, options))
end

-- Adding an op to a flow, which is released.
function kinds.add(n)
  local NothingOp = flow.op("NothingOp", nothing)
  return function()
    local blueprint = flow.new("add")
    for _ = 1, n do blueprint:add(NothingOp) end
    blueprint = nil -- luacheck: ignore 311
    collectgarbage()
  end
end

-- Ops that do nothing, one after another. All units keep the whole event log.
function kinds.op(n) return chain(n, flow.op("NothingOp", nothing)) end

-- Ops that change a value of the bucket.
function kinds.step(n)
  local IncrementOp = flow.op("IncrementOp", function(ctx) ctx:set("n", ctx:get("n") + 1) end)
  return chain(n, IncrementOp, { n = 0 })
end

-- Ops that change a string of the bucket.
function kinds.string_step(n)
  return chain(n, flow.op("FlipOp", function(ctx)
    ctx:set("text", ctx:get "text" == "a short text" and "another text" or "a short text")
  end), { text = "a short text" })
end

-- Items of a group, three at a time.
function kinds.item(n)
  return group(numbers(n), flow.op("DoubleOp", {
    needs = { item = "integer" }, gives = { doubled = "integer" },
    run = function(ctx) ctx:set("doubled", ctx:get("item") * 2) end,
  }), { output = "doubled", max_concurrent = 3 })
end

-- Items of an iterator, each of which is doubled, too.
function kinds.iterated_item(n)
  local DoubleOp = flow.op("DoubleOp", {
    needs = { item = "integer" }, gives = { doubled = "integer" },
    run = function(ctx) ctx:set("doubled", ctx:get("item") * 2) end,
  })
  local blueprint = flow.new("group"):add_grouped(DoubleOp, {
    input = "list", output = "doubled", max_concurrent = 3,
  })
  return function()
    local i = 0
    local run = blueprint:run { list = function() if i < n then i = i + 1 return i end end }
    assert(run.ok, run.error)
  end
end

-- Items of an iterator whose results nobody keeps, with a short log, and with one as usual.
local function passing(n, options)
  local NothingOp = flow.op("NothingOp", { needs = { item = "integer" }, run = nothing })
  local blueprint = flow.new("group"):add_grouped(NothingOp, { input = "list", max_concurrent = 3 })
  return function()
    local i = 0
    local run = blueprint:start(
      { list = function() if i < n then i = i + 1 return i end end }, options)
    run:wait()
    assert(run.ok, run.error)
  end
end
function kinds.passing_item(n) return passing(n, { log_limit = 10000 }) end
function kinds.logged_item(n) return passing(n) end

-- Items that go through one group, or two of a graph.
local function pipeline(n, stages)
  local graph = flow.graph("pipeline"):data { list1 = numbers(n) }
  for stage = 1, stages do
    graph:add_grouped(flow.op("Stage" .. stage .. "Op", {
      needs = { item = "integer" }, gives = { doubled = "integer" },
      run = function(ctx) ctx:set("doubled", ctx:get("item") * 2) end,
    }), { input = "list" .. stage, output = "list" .. stage + 1, max_concurrent = 3 })
  end
  return running(graph)
end
function kinds.piped_once(n) return pipeline(n, 1) end
function kinds.piped_twice(n) return pipeline(n, 2) end

-- Items that one op writes and another reads meanwhile.
function kinds.stream_item(n)
  local WriteOp = flow.op("WriteOp", { gives = { items = "stream<integer>" }, run = function(ctx)
    for i = 1, n do ctx:emit("items", i) end
  end })
  local ReadOp = flow.op("ReadOp", { needs = { items = "stream<integer>" }, run = function(ctx)
    local sum = 0
    for item in ctx:get "items" do sum = sum + item end
    assert(sum == n * (n + 1) // 2)
  end })
  return running(flow.graph("stream"):add(WriteOp):add(ReadOp))
end

-- Ops of a graph that do nothing, each after the one before it.
function kinds.graph_op(n)
  local NothingOp, graph = flow.op("NothingOp", nothing), flow.graph("graph")
  local last
  for i = 1, n do
    local name = "Op" .. i
    graph:add(NothingOp:with { name = name }, { after = last })
    last = name
  end
  return running(graph)
end

-- Ops of a graph with a hundred edges each, of which there are so many, or with none.
local function fan(n, has_edges)
  local graph, data, needs = flow.graph("fan"), {}, {}
  for i = 1, 100 do
    local key = "key" .. i
    needs[key] = "integer"
    if has_edges then
      graph:add(flow.op("Giver" .. i, {
        gives = { [key] = "integer" }, run = function(ctx) ctx:set(key, i) end,
      }))
    else
      data[key] = i
      graph:add(flow.op("Giver" .. i, nothing))
    end
  end
  local ReaderOp = flow.op("ReaderOp", { needs = needs, run = nothing })
  for i = 1, n // 100 do graph:add(ReaderOp:with { name = "Reader" .. i }) end
  return running(graph:data(data))
end
function kinds.edge(n) return fan(n, true) end
function kinds.no_edge(n) return fan(n, false) end

-- Steps of a graph, some of them groups, that need what those before them give, and are checked.
function kinds.checked_step(n)
  local graph = flow.graph("checked"):data { key0 = 0, list = { 1 } }
  for i = 1, n do
    local needs, gives = { ["key" .. i - 1] = "integer" }, { ["key" .. i] = "integer" }
    graph:add(flow.op("Key" .. i .. "Op", { needs = needs, gives = gives, run = nothing }))
    if i % 10 == 0 then
      local ItemOp = flow.op("Item" .. i .. "Op", { needs = { item = "integer" }, run = nothing })
      graph:add_grouped(ItemOp, { input = "list", as = "item" })
    end
  end
  return function() assert(#graph:check() == 0) end
end

function kinds.string_item(n)
  local list = {}
  for i = 1, n do list[i] = "item " .. i end
  return group(list, flow.op("CopyOp", {
    needs = { item = "string" }, gives = { copy = "string" },
    run = function(ctx) ctx:set("copy", ctx:get "item") end,
  }), { output = "copy", max_concurrent = 3 })
end

-- Items that fail by an error of Lua, while the others continue.
local function failing_items(n, run)
  local FailingOp = flow.op("FailingOp", { needs = { item = "integer" }, run = run })
  return group(numbers(n), FailingOp, { max_concurrent = 3, allow_failure = true })
end
function kinds.failed_item(n) return failing_items(n, function() error "no" end) end

-- Items that fail by a method of the engine: the traceback says its name.
function kinds.refused_item(n) return failing_items(n, function(ctx) ctx:fail "no" end) end

-- Attempts of one op that fail.
function kinds.retried_attempt(n)
  return running(flow.new("retry"):add(flow.op("FailingOp", {
    retry = { attempts = n + 1, delay = 0 },
    run = function(ctx) if ctx.attempt <= n then error "no" end end,
  })))
end

-- Tasks that wait when they are cancelled.
function kinds.cancelled_task(n)
  local function wait() flow.sleep(1000) end
  return function()
    local tasks = {}
    for i = 1, n do tasks[i] = flow.spawn(wait) end
    flow.sleep(0)
    for i = 1, n do tasks[i]:cancel() end
    flow.sleep(0)
    for i = 1, n do assert(tasks[i].state == "cancelled") end
  end
end

-- Ops that wait at the same time, as members of add_parallel.
function kinds.member(n)
  local WaitingOp = flow.op("WaitingOp", function() flow.sleep(0) end)
  local blueprint, parts = flow.new("parallel"), {}
  for i = 1, n do parts[i] = WaitingOp end
  return running(blueprint:add_parallel(table.unpack(parts)))
end

-- Ops of a group that sleep at the same time.
function kinds.sleeper(n)
  return group(numbers(n), flow.op("SleepyOp", function() flow.sleep(0.1) end):with {
    primary_input = "item",
  }, { max_concurrent = n }), 0.1
end

-- Transitions between two steps of a machine, which are functions.
function kinds.transition(n)
  local forward, step = flow.forward, flow.step
  local function increment(state) return state + 1 end
  local machine = flow.machine {
    name = "bounce", start = "ping", max_transitions = n,
    step("ping", { run = increment, flow.next(forward "pong") }),
    step("pong", { run = increment, flow.next(forward "ping") }),
  }
  return function()
    local run = machine:start(1)
    -- Nothing else ends it.
    assert(run.error.message == ("exceeded max_transitions (%d)"):format(n), run.error)
  end
end

-- Settling a task that has a continuation.
function kinds.settle(n)
  local contexts, sum = {}, 0
  local function add(value) sum = sum + value end
  for i = 1, n do
    contexts[i] = flow.context()
    contexts[i].task:next_on_success(add)
  end
  return function()
    for i = 1, n do contexts[i]:set_result(1) end
    assert(sum == n)
  end
end

-- A chain of continuations, which is built, settled and awaited.
function kinds.continuation(n)
  local function increment(value) return value + 1 end
  return function()
    local context = flow.context()
    local task = context.task
    for _ = 1, n do task = task:next_on_success(increment) end
    context:set_result(0)
    assert(task:await() == n)
  end
end

-- Awaiting a settled task.
function kinds.await(n)
  local task = flow.resolved(1)
  return function()
    local sum = 0
    for _ = 1, n do sum = sum + task:await() end
    assert(sum == n)
  end
end

-- A number of a list that is sent to a worker, ten times in a run.
function kinds.number(n)
  local length = n // 10
  local run = chain(10, flow.op("LengthOp", {
    needs = { list = "any" }, gives = { length = "integer" }, thread = "worker",
    run = function(ctx) ctx:set("length", #ctx:get "list") end,
  }), { list = numbers(length) })
  return function() assert(run().data.length == length) end
end

-- An element of a list for one of ten ops, which declare it as one of integers.
function kinds.needed_element(n)
  return chain(10, flow.op("NeedingOp", { needs = { list = "integer[]" }, run = nothing }),
    { list = numbers(n // 10) })
end

-- A flow in a case of another one, which are checked, drawn, executed and summed up.
function kinds.shown_case(n)
  local blueprint = flow.op("NothingOp", nothing)
  for _ = 1, n do blueprint = flow.new("outer"):case("plan", "pro"):add(blueprint) end
  return function()
    assert(#blueprint:check() <= 1 and #blueprint:dot() > n)
    assert(#blueprint:run { plan = "pro" }:summary() > n)
  end
end

-- The form of an op's code, whose functions enclose each other.
function kinds.enclosed_function(n)
  local inner = nothing
  for _ = 1, n do
    local enclosed = inner
    inner = function() return enclosed() end
  end
  local op, code_digest = flow.op("EnclosingOp", inner), require "flow.testing".code_digest
  return function() assert(code_digest(op)) end
end

-- A small object of a list that is encoded as JSON, ten times in a run.
function kinds.object(n)
  local list = {}
  for i = 1, n // 10 do list[i] = { id = i, name = "an object", price = i / 4, tags = {} } end
  local encode = require "flow.json".encode
  return function()
    for _ = 1, 10 do assert(#encode(list) > n) end
  end
end

-- Groups of one item, each in the item of the one around it.
function kinds.nested_group(n)
  local inner = flow.op("NothingOp", nothing)
  for _ = 1, n do
    inner = flow.new("level"):data { list = { 1 } }
      :add_grouped(inner, { input = "list", as = "item" })
  end
  return running(inner)
end

-- Keys of the bucket, each of which is set and read at the end.
function kinds.key(n)
  local keys = {}
  for i = 1, n do keys[i] = "key" .. i end
  local run = running(flow.new("keys"):add(flow.op("KeysOp", function(ctx)
    for i = 1, n do ctx:set(keys[i], i) end
  end)))
  return function()
    local data = run().data
    for i = 1, n do assert(data[keys[i]] == i) end
  end
end

-- Sets of one key, all of which are in the log, and in the summary.
function kinds.logged_set(n)
  local run = running(flow.new("sets"):add(flow.op("SettingOp", function(ctx)
    for i = 1, n do ctx:set("value", i) end
  end)))
  return function() assert(#run():summary() > n) end
end

-- Secrets, with one line of the log for each.
function kinds.secret(n)
  local data = {}
  for i = 1, n do data["key" .. i] = flow.secret("the secret number " .. i) end
  local run = running(flow.new("secrets"):data(data):add(flow.op("LoggingOp", function(ctx)
    for i = 1, n do ctx:log("a line of the log, number", i) end
  end)))
  return function() assert(#run():summary() > n) end
end

require "measured"(assert(kinds[kind], "no such kind"), count, runs)
