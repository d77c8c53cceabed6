-- A long execution of Swift ops without a wait gives turns to others every 1,000 ops.
-- With code of a script in between it is executed up to its first wait.
local flow, check = require "flow", require "check"

local CountOp = flow.ops.PrintOp ""
local function items(count)
  local list = {}
  for i = 1, count do list[i] = 1 end
  return list
end
local function group(count)
  return flow.new("items"):data { ns = items(count) }:add_grouped(CountOp, { input = "ns", as = "n" })
end
local function machine(count)
  return flow.machine { name = "m", start = "a", max_transitions = count,
    flow.step("a", { run = CountOp, flow.next(flow.stay()) }) }
end
local function steps(count)
  local all = flow.new("steps")
  for _ = 1, count do all:add(CountOp) end
  return all
end
local function side_by_side(count)
  local all = {}
  for i = 1, count do all[i] = CountOp end
  return flow.new("parallel"):add_parallel(table.unpack(all))
end
-- Flows of flows without any op.
local function nested(depth)
  local inner = flow.new("empty")
  for _ = 1, depth do
    local outer = flow.new("outer")
    for _ = 1, 4 do outer:add(inner) end
    inner = outer
  end
  return inner
end

-- In which state another task finds the run of `op`.
local function turns(op)
  local run, seen = nil, {}
  flow.spawn(function()
    for i = 1, 2 do
      flow.sleep(0)
      seen[i] = run.state
    end
  end)
  run = op:start {}
  check.equal(run.state, "pending", "at the start")
  run:wait()
  return seen
end
for _, op in ipairs { group(50000), machine(50000), steps(50000), side_by_side(50000), nested(8) } do
  check.same(turns(op), { "pending", "pending" })
end
-- A flow that is over before that ends within its start, and so does one that executes Lua code.
local LuaOp = flow.op("LuaOp", function() end)
local lua = flow.new("lua")
for _ = 1, 3000 do lua:add(LuaOp) end
local functions = flow.machine { name = "functions", start = "a", max_transitions = 3000,
  flow.step("a", { run = function() end, flow.next(flow.stay()) }) }
check.equal(functions:start(1).error.message, "exceeded max_transitions (3000)")
for _, op in ipairs { lua, group(900), steps(900), side_by_side(900), nested(4) } do
  check.equal(op:start {}.state, "succeeded", op.name)
end
-- So it does in an op that has executed as many itself.
local states = {}
steps(990):add(flow.op("LastOp", function()
  for i = 1, 3 do states[i] = steps(500):start {}.state end
end)):run {}
check.same(states, { "succeeded", "succeeded", "succeeded" })
