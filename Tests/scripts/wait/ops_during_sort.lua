-- Ops continue while the main chunk waits inside a sort.
local flow, check = require "flow", require "check"
local ticks = 0
flow.new("ticking"):add(flow.op("TickOp", function()
  for _ = 1, 5 do flow.sleep(0.001) ticks = ticks + 1 end
end)):start()
local list = { 2, 1 }
table.sort(list, function(a, b) flow.sleep(0.1) return a < b end)
check.equal(ticks, 5)
check.same(list, { 1, 2 })
