-- arg[1] ops that add 1 to a value of the bucket, the whole event log kept. Prints ns an op.
local flow = require "flow"
local n = tonumber(arg[1])
local IncrementOp = flow.op("IncrementOp", function(ctx) ctx:set("n", ctx:get("n") + 1) end)
local blueprint = flow.new("steps"):data { n = 0 }
for _ = 1, n do blueprint:add(IncrementOp) end
collectgarbage()
local before = flow.now()
local run = blueprint:run()
local elapsed = flow.now() - before
assert(run.ok and run.data.n == n)
print(elapsed / n * 1e9)
