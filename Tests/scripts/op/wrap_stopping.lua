-- An op and the op around it are stopped together, and the inner one ends first.
local check = require "check"
local flow = require "flow"

local order = {}
local function note(what) order[#order + 1] = what end
local SlowOp = flow.op("SlowOp", function(ctx)
  ctx:defer(function() note "inner" end)
  flow.sleep(60)
end)
local function around(body) return flow.wrap(SlowOp, body):with { name = "AroundOp" } end
local CaughtOp = around(function(ctx, execute)
  ctx:defer(function() note "outer" end)
  local ok, err = pcall(execute)
  check.equal(ok, false)
  note(err.kind)
end)

local run = CaughtOp:start()
run:cancel "enough"
run:wait()
check.equal(run.state, "cancelled")
check.contains(run:summary(), "[SlowOp] DidFinish: cancelled: enough\n",
  "[AroundOp] DidFinish: cancelled: enough\n")
check.same(order, { "cancelled", "inner", "outer" })

-- Its own timeout, and the timeout of the op within.
order = {}
run = CaughtOp:with({ timeout = 5 }):run()
check.equal(run.error.kind, "timeout")
check.equal(run.error.op, "AroundOp")
check.contains(run:summary(), "[SlowOp] DidFinish: cancelled: timed out after 5s\n",
  "[AroundOp] DidFinish: timedOut after 5s\n")
check.same(order, { "timeout", "inner", "outer" })
run = flow.wrap(SlowOp:with { timeout = 5 }, function(_, execute) execute() end)
  :with({ name = "AroundOp" }):run()
check.equal(run.error.kind, "timeout")
check.equal(run.error.op, "SlowOp")

-- A busy one, too: at the timeout of the op around it, and of a flow around both.
local BusyOp = flow.op("BusyOp", function() while true do pcall(function() while true do end end) end end)
local AroundBusyOp = flow.wrap(BusyOp, function(_, execute) execute() end):with { name = "AroundOp" }
run = AroundBusyOp:with({ timeout = 0.05 }):run()
check.equal(run.error.op, "AroundOp")
check.contains(run:summary(), "[BusyOp] DidFinish: cancelled: timed out after 0.05s\n")
run = flow.new("limited"):add(AroundBusyOp):with({ timeout = 0.05 }):run()
check.equal(run.error.op, "limited")
check.equal(run.error.message, "timed out after 0.05s")

-- Work that is still executed when its function has returned is cancelled; the op waits for that.
order = {}
run = around(function(_, execute) flow.spawn(execute):next_on_error(print) end):run()
check.equal(run.ok, true)
check.same(order, { "inner" })
check.contains(run:summary(),
  "[SlowOp] DidFinish: cancelled\n")
local summary = run:summary()
check.equal(summary:find("[SlowOp] DidFinish", 1, true) < summary:find("[AroundOp] DidFinish", 1, true), true)

-- In a group the next item doesn't begin in a bucket that is still used.
local seen = {}
local ItemOp = flow.op("ItemOp", {
  needs = { n = "integer" },
  run = function(ctx)
    ctx:defer(function() flow.sleep(0.001) seen[#seen + 1] = ctx:get "n" end)
    flow.sleep(60)
  end,
})
run = flow.new("group"):data({ ns = { 1, 2, 3 } }):add_grouped(
  flow.wrap(ItemOp, function(_, execute) flow.spawn(execute) end),
  { input = "ns", max_concurrent = 1 }):run()
check.equal(run.ok, true)
check.same(seen, { 1, 2, 3 })

-- The innermost op that waits for what never comes is the one that is stalled.
local StuckOp = flow.op("StuckOp", function() flow.context().task:await() end)
run = flow.wrap(StuckOp, function(_, execute) execute() end):with({ name = "AroundOp" }):run()
check.equal(run.error.message, "stalled: [StuckOp] never finished")

-- However deep they are nested, an op ends with an error at the worst.
local DeepOp = flow.op("DeepOp", function() end)
for _ = 1, 300 do DeepOp = flow.wrap(DeepOp, function(_, execute) execute() end) end
check.contains(DeepOp:run().error.message, "C stack overflow")
local circular = flow.new("circular")
circular:add(flow.wrap(circular, function(_, execute) execute() end))
check.contains(circular:run().error.message, "C stack overflow")
