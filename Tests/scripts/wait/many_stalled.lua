-- The end of many stalled ops takes time in proportion to their number.
-- Otherwise twice as many would take four times as long, and this test would exceed its limit.
local flow = require "flow"
local check = require "check"

local count = 0
local StuckOp = flow.op("StuckOp", function(ctx)
  ctx:defer(function() count = count + 1 end)
  flow.context().task:await()
end)
local runs = {}
for i = 1, os.getenv "FLOWLUA_SANITIZER" and 3000 or 30000 do runs[i] = StuckOp:start() end
check.equal(runs[1]:wait(), true)
for i = #runs, 1, -1 do check.equal(runs[i].error.kind, "stalled") end
check.equal(count, #runs)
