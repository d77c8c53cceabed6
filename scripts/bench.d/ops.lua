-- arg[1] Lua ops that do nothing, one after the other, the whole event log kept. Prints ns an op.
local flow = require "flow"
local n = tonumber(arg[1])
local NothingOp = flow.op("NothingOp", function() end)
local blueprint = flow.new("ops")
for _ = 1, n do blueprint:add(NothingOp) end
collectgarbage()
local before = flow.now()
local run = blueprint:run()
local elapsed = flow.now() - before
assert(run.ok)
print(elapsed / n * 1e9)
