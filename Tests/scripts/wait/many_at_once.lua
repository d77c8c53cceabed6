-- A thousand sleeps take about as long as one.
local flow = require "flow"
local SleepOp = flow.op("SleepOp", function() flow.sleep(0.05) end)
local runs, before = {}, flow.now()
for i = 1, 1000 do runs[i] = flow.new("sleeping"):add(SleepOp):start() end
for _, run in ipairs(runs) do run:wait() assert(run.ok) end
local elapsed = flow.now() - before
assert(elapsed < 10, elapsed) -- 50 s one after the other
