-- A timeout ends busy code in nested runs of any depth.
-- clock: real: busy code is stopped by the machine's clock
-- expect-status: 1
-- expect-stderr: the cleanup of [CleaningOp] at Tests/scripts/stop/busy_nested_run.lua:
local flow = require "flow"
local check = require "check"

local BusyOp = flow.op("BusyOp", function() while true do end end)
local function nested(start)
  local OuterOp = flow.op("OuterOp", { timeout = 0.02, run = start })
  local run = OuterOp:run()
  check.equal(run.error.message, "timed out after 0.02s")
  check.equal(run.error.op, "OuterOp")
  check.equal(run.duration < 10, true)
  return run
end

local summary = nested(function() BusyOp:start() end):summary()
check.contains(summary, "[OuterOp/BusyOp] DidFinish: cancelled: timed out after 0.02s")
nested(function() BusyOp:run() end)
nested(function() flow.new("f"):add(BusyOp):run() end)
nested(function() flow.op("MiddleOp", function() BusyOp:run() end):run() end)
nested(function() flow.op("MiddleOp", { timeout = 60, run = function() BusyOp:run() end }):run() end)
nested(function()
  flow.sleep(0.001)
  BusyOp:with { timeout = 60 }:run()
end)


-- In groups, callbacks and cleanups of such runs, and in what was spawned.
local function busy() while true do end end
local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, run = busy })
local group = flow.new("group"):data { ns = { 1, 2, 3 } }:add_grouped(ItemOp, { input = "ns" })
nested(function() group:run() end)
nested(function() flow.sleep(0.001) group:run() end)
nested(function() flow.new("p"):add_parallel(BusyOp, BusyOp):run() end)
nested(function()
  flow.new("outer"):data { ns = { 1, 2 } }
    :add_grouped(flow.new("inner"):needs { n = "integer" }:add(BusyOp), { input = "ns" }):run()
end)
nested(function() flow.new("f"):will_start(busy):run() end)
nested(function() flow.new("f"):case(busy):add(BusyOp):run() end)
nested(function()
  flow.spawn(function()
    flow.sleep(0)
    return flow.spawn(function() flow.sleep(0) group:run() end)
  end):await()
end)
nested(function() return flow.with_delay(0.001):next(function() group:run() end) end)
nested(function() flow.machine { name = "m", start = "a", flow.step("a", { run = group }) }:run() end)
local cleaned = nested(function()
  flow.op("CleaningOp", { grace = 0.5, run = function(ctx) ctx:defer(busy) end }):run()
end)
check.equal(cleaned.duration < 10, true)

-- Its own, where that is shorter.
local limit = flow.op("OuterOp", { timeout = 60, run = function(ctx)
  local run = BusyOp:with { timeout = 0.01 }:run()
  ctx:set("message", run.error.message)
end }):run()
check.equal(limit.data.message, "timed out after 0.01s")

-- A run that an op leaves to its own when it succeeds isn't limited by it any more.
local left
local LeavingOp = flow.op("LeavingOp", { timeout = 0.2, run = function()
  left = flow.op("LeftOp", function(ctx)
    flow.sleep(0.1)
    local till = flow.now() + 0.2
    while flow.now() < till do end
    ctx:set("done", true)
  end):start()
end })
flow.new("f"):add(LeavingOp):add(flow.op("WaitingOp", function() left:wait() end)):run()
check.equal(left.data.done, true)

-- But by the time of a flow that it is in, and of what has started that.
for _, left in ipairs { busy, function() BusyOp:run() end } do
  local LeaveOp = flow.op("LeaveOp", function()
    flow.spawn(function() flow.sleep(0.001) left() end)
  end)
  local leaving = flow.new("leaving"):add(LeaveOp):add(flow.ops.SleepOp(60))
  local run = leaving:with { timeout = 0.02 }:run()
  check.equal(run.error.message, "timed out after 0.02s")
  check.equal(run.duration < 10, true)
  nested(function() leaving:run() end)
end
