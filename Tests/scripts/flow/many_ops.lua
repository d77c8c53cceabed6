-- A flow of ten thousand ops runs as often as it is started.
local flow, check = require "flow", require "check"
local n = 0
local CountOp = flow.op("CountOp", function() n = n + 1 end)
local many = flow.new("many")
for _ = 1, 10000 do many:add(CountOp) end
for i = 1, 10 do
  local run = many:run()
  assert(run.ok)
  check.equal(n, i * 10000)
  check.equal(#run:events() >= 20000, true)
end
