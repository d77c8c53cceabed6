-- flow.spawn runs a function at once up to its first wait and returns a task.
local flow, check = require "flow", require "check"

local log = {}
local task = flow.spawn(function(...)
  log[#log + 1] = select("#", ...)
  flow.sleep(0.001)
  log[#log + 1] = "woke"
  return "result", "dropped"
end, nil, 2, nil)
check.same(log, { 3 })
check.equal(task.state, "pending")
check.equal(task:await(), "result")
check.same(log, { 3, "woke" })
check.equal(flow.spawn(function() return 1 end).state, "succeeded")

-- It follows a returned task; an error fails it, with a traceback into the script.
check.equal(flow.spawn(function() return flow.with_delay(0.001, 9) end):await(), 9)
local bad = flow.spawn(function() error("boom") end)
check.contains(bad.error.message, "spawn.lua:", "boom")
check.contains(bad.error.traceback, "spawn.lua:")
local value = {}
check.equal(flow.spawn(error, value).error.cause, value)

-- Many run side by side.
local tasks = {}
for i = 1, 100 do
  tasks[i] = flow.spawn(function()
    flow.sleep(0.001 * (101 - i) / 100)
    return i
  end)
end
for i, result in ipairs(flow.when_all_succeed(tasks):await()) do check.equal(result, i) end

-- await works in a script's own coroutines, in pcall and in metamethods.
local co = coroutine.wrap(function() return flow.with_delay(0.001, "co"):await() end)
check.equal(co(), "co")
local object = setmetatable({}, { __index = function() return flow.with_delay(0.001, "meta"):await() end })
check.equal(flow.spawn(function() return select(2, pcall(function() return object.x end)) end):await(), "meta")

-- A closable task is cancelled, and waited for, when the scope ends.
local closed
do
  local t <close> = flow.spawn(function()
    local guard <close> = setmetatable({}, { __close = function() closed = true end })
    flow.sleep(1000)
    return guard
  end)
  check.equal(t.state, "pending")
end
check.equal(closed, true)

-- A task that an op spawns belongs to it: with an op that fails it ends before, else with the run.
local states = {}
local run = flow.new("owner"):add(flow.op("SpawnOp", function()
  states.left = flow.spawn(function() flow.sleep(1000) end)
end)):add(flow.op("NextOp", function() states.meanwhile = states.left.state end)):run()
check.equal(run.ok, true)
check.equal(states.meanwhile, "pending")
check.equal(states.left.state, "cancelled")
check.equal(tostring(states.left.error), "cancelled")
local cleaned
run = flow.op("FailOp", function(ctx)
  flow.spawn(function()
    local guard <close> = setmetatable({}, { __close = function() cleaned = true end })
    flow.sleep(1000)
    return guard
  end)
  ctx:fail("no")
end):run()
check.equal(cleaned, true)
check.equal(run.error.message, "no")

-- A run started by a task of an op appears in the log of the op's run.
local ChildOp = flow.op("ChildOp", function() end)
run = flow.op("ParentOp", function()
  flow.spawn(function() flow.sleep(0) ChildOp:run() end):await()
end):run()
check.contains(run:summary(), "[ParentOp/ChildOp] WillStart", "[ParentOp/ChildOp] DidFinish: successfully")

-- A timeout stops what an op's task is busy with.
run = flow.op("BusyOp", {
  timeout = 0.01,
  run = function() flow.spawn(function() flow.sleep(0) while true do end end):await() end,
}):run()
check.equal(run.error.kind, "timeout")
run = flow.op("BusyAtOnceOp", {
  timeout = 0.01,
  run = function() flow.spawn(function() while true do pcall(error) end end):await() end,
}):run()
check.equal(run.error.kind, "timeout")

check.usage(function() flow.spawn() end, "spawn", "#1", "function expected, got no value")
check.usage(function() flow.spawn(task) end, "spawn", "#1", "function expected, got task")
