-- The iterator of a for loop may wait.
local flow, check = require "flow", require "check"
local function slowly(n)
  return function(_, i)
    flow.sleep(0.001)
    if i < n then return i + 1 end
  end, nil, 0
end
local function count()
  local seen = {}
  for i in slowly(4) do seen[#seen + 1] = i end
  check.same(seen, { 1, 2, 3, 4 })
end
count()
local run = flow.op("CountOp", count):run()
assert(run.ok, run.error)
