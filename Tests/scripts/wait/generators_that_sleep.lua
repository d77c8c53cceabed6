-- A generator may sleep between its yields, unnoticed by its caller.
local flow, check = require "flow", require "check"
local function generator(n, seconds)
  return coroutine.wrap(function()
    for i = 1, n do
      flow.sleep(seconds)
      coroutine.yield(i, nil, i * i)
    end
    flow.sleep(seconds)
    return "end"
  end)
end
local function use()
  local next_value = generator(3, 0.001)
  for i = 1, 3 do
    local values = table.pack(next_value())
    check.equal(values.n, 3)
    check.same({ values[1], values[2], values[3] }, { i, nil, i * i })
  end
  check.equal(next_value(), "end")
end
use()
local run = flow.op("UseOp", use):run()
assert(run.ok, run.error)
