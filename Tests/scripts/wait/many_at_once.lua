-- A thousand simultaneous sleeps take the time of one.
local flow, check = require "flow", require "check"
local SleepOp = flow.op("SleepOp", function() flow.sleep(0.05) end)
local runs, before = {}, flow.now()
for i = 1, 1000 do runs[i] = flow.new("sleeping"):add(SleepOp):start() end
for _, run in ipairs(runs) do run:wait() assert(run.ok) end
check.equal(flow.now() - before, 0.05)
