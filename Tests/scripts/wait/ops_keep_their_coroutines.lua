-- Coroutines of simultaneous ops don't mix.
local flow, check = require "flow", require "check"
local NumberOp = flow.op("NumberOp", function(ctx, from)
  local numbers = coroutine.wrap(function()
    for i = from, from + 4 do flow.sleep(0.001) coroutine.yield(i) end
  end)
  local sum = 0
  for _ = 1, 5 do
    sum = sum + numbers()
    flow.sleep(0.0005)
  end
  ctx:set("sum", sum)
end)
local runs = {}
for i = 1, 20 do runs[i] = flow.new("numbers"):add(NumberOp(i * 100)):start() end
for i, run in ipairs(runs) do
  run:wait()
  assert(run.ok, run.error)
  check.equal(run.data.sum, i * 500 + 10)
end
