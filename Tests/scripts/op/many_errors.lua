-- A thousand failures leak no memory.
local flow, check = require "flow", require "check"
local FailOp = flow.op("FailOp", function(_, i) error({ i }) end)
for i = 1, 1000 do
  local run = flow.new("fail"):add(FailOp(i)):run()
  assert(not run.ok and run.error.cause[1] == i)
end
collectgarbage()
assert(collectgarbage("count") < 20000)
