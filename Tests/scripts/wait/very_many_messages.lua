-- Messages to a run that takes very many take time in proportion to their number.
-- Otherwise 100,000 of them would take minutes, and this test would exceed its limit.
local flow, check = require "flow", require "check"

local count = os.getenv "FLOWLUA_SANITIZER" and 5000 or 100000
local sum = 0
local run = flow.op("TakeOp", function(ctx)
  for _ = 1, count do sum = sum + ctx:wait_for "n" end
end):start()
for i = 1, count do flow.send(run, "later", i) end
for i = 1, count do flow.send(run, "n", i) end
run:await()
check.equal(sum, count * (count + 1) // 2)

-- The oldest one comes first.
local order = {}
run = flow.op("OrderOp", function(ctx)
  for i = 1, 3 do order[i] = ctx:wait_for "n" end
end):start()
for i = 3, 1, -1 do flow.send(run, "n", i) end
run:await()
check.same(order, { 3, 2, 1 })
