-- Sleeps end in the order of their times, and equal ones in the order they began.
local flow, check = require "flow", require "check"
local order = {}
local SleepOp = flow.op("SleepOp", function(_, name, seconds) flow.sleep(seconds) order[#order + 1] = name end)
local runs = {}
for i, seconds in ipairs { 0.05, 0.03, 0.01, 0.04, 0.02 } do
  runs[i] = flow.new("timer"):add(SleepOp(i, seconds)):start()
end
for _, run in ipairs(runs) do run:wait() end
check.same(order, { 3, 5, 2, 4, 1 })
