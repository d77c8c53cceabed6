-- Ops continue while the main chunk waits.
local flow, check = require "flow", require "check"
local ticks = 0
local run = flow.new("ticking"):add(flow.op("TickOp", function()
  for _ = 1, 5 do flow.sleep(0.001) ticks = ticks + 1 end
end)):start()
flow.sleep(0.1)
check.equal(ticks, 5)
check.equal(run.ok, true)
