-- A run is a task: it can be awaited, cancelled, queried and bound to a scope.
local flow, check = require "flow", require "check"
local AnOp = flow.op("AnOp", { gives = { x = "integer" }, run = function(ctx)
  flow.sleep(0.001)
  ctx:set("x", 1)
end })
local run = AnOp:start()
check.equal(run.completed, false)
check.equal(run.result, nil)
check.same(run:await(), { x = 1 })
check.same(run.result, { x = 1 })
check.equal(run.completed, true)
check.equal(run.faulted, false)
check.equal(run.cancelled, false)
check.equal(run:cancel(), false)

local FailOp = flow.op("FailOp", function(ctx) ctx:fail("no", { code = 5 }) end)
local failed = FailOp:start()
local raised = check.raises(function() failed:await() end, "no")
check.equal(raised, failed.error)
check.equal(raised.code, 5)
check.equal(failed.faulted, true)
check.equal(failed.result, nil)
-- Awaited in an op, the error is passed on as it is.
local inner
local outer = flow.op("OuterOp", function()
  inner = FailOp:start()
  inner:await()
end):run()
check.equal(outer.error, inner.error)

local SlowOp = flow.op("SlowOp", function() flow.sleep(100) end)
local stopped = SlowOp:start()
check.equal(stopped:cancel("enough"), true)
check.equal(stopped:wait(), true)
check.equal(stopped.cancelled, true)
check.equal(stopped.faulted, false)
check.equal(stopped.state, "cancelled")
check.raises(function() stopped:await() end, "cancelled: enough")
do
  local scoped <close> = SlowOp:start()
  stopped = scoped
end
check.equal(stopped.error.message, "cancelled")
check.usage(function() run.await(run.data) end, "await", "bad self", "run expected, got table")
check.usage(function() run:cancel({}) end, "cancel", "#1", "string expected, got table")
