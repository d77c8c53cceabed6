-- After a stop all undos of a flow share its grace: what takes longer is cut off where it waits, and reported.
-- expect-status: 1
-- expect-stderr: the undo of [BOp] was cut after a grace of 2s, while it waited in flow.sleep
local flow, check = require "flow", require "check"

local lines = {}
local function op(name, seconds)
  return flow.op(name, {
    run = function() end,
    undo = function(ctx)
      ctx:defer(function() lines[#lines + 1] = name .. " deferred" end)
      lines[#lines + 1] = name .. " begins"
      flow.sleep(seconds)
      lines[#lines + 1] = name .. " ends"
    end,
  })
end
local f = flow.new("f"):add(op("AOp", 0)):add(op("BOp", 100)):add(op("COp", 1))
  :add(flow.op("SlowOp", function() flow.sleep(100) end)):with { grace = 2, timeout = 1 }
local run = f:run()
check.equal(run.error.kind, "timeout")
check.equal(run.duration, 3.0)
check.same(lines, {
  "COp begins", "COp ends", "COp deferred", "BOp begins", "BOp deferred", "AOp begins",
  "AOp deferred",
})
check.contains(check.masked(run:summary()), "T [BOp] Undo: withError: the undo of [BOp] was cut")
