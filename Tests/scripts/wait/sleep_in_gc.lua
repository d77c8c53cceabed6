-- A wait in a finalizer is an error there, and the script continues.
local flow, check = require "flow", require "check"
local failed
do
  local doomed = setmetatable({}, { __gc = function() failed = not pcall(flow.sleep, 0.001) end })
end
for _ = 1, 3 do collectgarbage() end
check.equal(failed, true)
flow.sleep(0.001)
assert(flow.op("FineOp", function() flow.sleep(0.001) end):run().ok)
