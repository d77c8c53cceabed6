-- Failures, stalls and cancellations are outcomes of the run that a test returns.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local failed = testing.run(flow.op("FailOp", function(ctx) ctx:fail("no", { code = 7 }) end))
check.equal(failed.ok, false)
check.equal(failed.error.message, "no")
check.equal(failed.error.code, 7)
check.raises(function() failed:await() end, "no")

local value = {}
local raised = testing.run(flow.op("RaiseOp", function() error(value) end))
assert(rawequal(raised.error.cause, value))

local stalled = testing.run(flow.op("StallOp", function() flow.context().task:await() end))
check.equal(stalled.error.kind, "stalled")
check.equal(stalled.error.message, "stalled: [StallOp] never finished")

local stubborn = testing.run(flow.op("StubbornOp", function()
  while true do pcall(function() flow.context().task:await() end) end
end))
check.equal(stubborn.error.kind, "stalled")

local cancelled = testing.run(flow.op("CancelOp", function(ctx)
  ctx.run:cancel("enough")
  flow.sleep(1)
end))
check.equal(cancelled.state, "cancelled")
check.equal(cancelled.error.message, "cancelled: enough")

-- Leftovers of a run end with it.
local ended
local leaving = testing.run(flow.new("leaving"):add(flow.ops.SleepOp(1)):did_finish(function()
  flow.spawn(function()
    local guard <close> = setmetatable({}, { __close = function() ended = flow.now() end })
    while guard do flow.sleep(1) end
  end)
end))
assert(leaving.ok)
check.equal(ended, 1.0)
