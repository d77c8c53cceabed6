-- A timeout of a class, a copy or a place ends a waiting op, and each attempt has the whole time.
local flow, check = require "flow", require "check"
local function slow() flow.sleep(10) end
local SlowOp = flow.op("SlowOp", { timeout = 5, run = slow })
local run = SlowOp:run()
check.equal(run.state, "failed")
check.equal(run.error.kind, "timeout")
check.equal(run.error.message, "timed out after 5s")
check.equal(tostring(run.error), "[SlowOp] timed out after 5s (at " .. arg[0] .. ":3, in flow.sleep)")
check.equal(run.error.op, "SlowOp")
check.equal(run.error.cause, nil)
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
T [SlowOp] WillStart
T [SlowOp] DidFinish: timedOut after 5s
T [DataBucket] end with:
Flow isSuccess: false
======    Ending    ======
]])

run = SlowOp:with { timeout = 6, retry = 2 }:run()
check.equal(run.ok, false)
check.contains(check.masked(run:summary()), [[
T [SlowOp] Retry 2/2 in 0s: timed out after 6s
T [SlowOp] DidFinish: timedOut after 6s
]])

-- The op's treatment of it doesn't matter; the error it meets says why.
local caught
local CatchOp = flow.op("CatchOp", { timeout = 5, run = function()
  caught = select(2, pcall(flow.sleep, 10))
  error("something else")
end })
run = CatchOp:run()
check.equal(caught.kind, "timeout")
check.equal(run.error.kind, "timeout")

-- A flow at its place: what is within ends as cancelled.
caught = nil
local InnerOp = flow.op("InnerOp", function() caught = select(2, pcall(flow.sleep, 10)) end)
run = flow.new("outer"):add(flow.new("inner"):add(InnerOp), { timeout = 5 }):run()
check.equal(caught.kind, "cancelled")
check.equal(caught.message, "cancelled: timed out after 5s")
check.equal(run.error.kind, "timeout")
check.equal(run.error.op, "inner")

-- A callback before the first op counts, one after the last doesn't.
run = flow.new("outer")
  :add(flow.new("inner"):will_start(function() flow.sleep(10) end):add(SlowOp), { timeout = 5 }):run()
check.equal(run.error.kind, "timeout")
check.equal(run.error.message, "timed out after 5s")
run = flow.new("outer")
  :add(flow.new("inner"):did_finish(function() flow.sleep(20) end), { timeout = 5 }):run()
check.equal(run.ok, true)

-- Members of a group.
local ItemOp = flow.op("ItemOp", { needs = { i = "integer" }, timeout = 6, run = function(ctx)
  if ctx.index == 2 then flow.sleep(10) end
end })
run = flow.new("group"):add_grouped(ItemOp, { input = "items", allow_failure = true, failures = "failed" })
  :run { items = { 1, 2, 3 } }
check.equal(run.ok, true)
check.equal(#run.data.failed, 1)
check.equal(run.data.failed[1].index, 2)
check.equal(run.data.failed[1].error.kind, "timeout")
check.equal(run.data.failed[1].error.op, "ItemOp #2")
