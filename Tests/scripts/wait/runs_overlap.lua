-- Sleeps of two runs overlap.
local flow, check = require "flow", require "check"
local order = {}
local SleepOp = flow.op("SleepOp", function(_, name, seconds)
  order[#order + 1] = name .. " begins"
  flow.sleep(seconds)
  order[#order + 1] = name .. " ends"
end)
local a = flow.new("a"):add(SleepOp("a", 0.04)):start()
local b = flow.new("b"):add(SleepOp("b", 0.02)):start()
a:wait()
b:wait()
check.same(order, { "a begins", "b begins", "b ends", "a ends" })
