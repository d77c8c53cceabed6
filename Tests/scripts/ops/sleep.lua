-- SleepOp waits and blocks nothing else.
local flow, check = require "flow", require "check"
local SleepOp = flow.ops.SleepOp
local begun = flow.now()
local a, b = SleepOp(0.02):start(), flow.new("both"):add(SleepOp(0.01)):add(SleepOp(0.01)):start()
a:wait()
b:wait()
local took = flow.now() - begun
check.equal(took, 0.02)
assert(a.ok and b.ok)
assert(SleepOp(0):run().ok)
for _, seconds in ipairs { -1, 0 / 0, 1 / 0, -1 / 0 } do
  check.usage(function() SleepOp(seconds) end, "SleepOp", "#1", "seconds")
end
check.usage(function() SleepOp "long" end, "SleepOp", "#1", "number expected", "string")
assert(not SleepOp(1e300):start():wait(0.001))
os.exit(0)
