-- Waits pass through coroutines nested to any depth.
local flow, check = require "flow", require "check"
local function nest(n)
  if n == 0 then
    flow.sleep(0.001)
    return "bottom"
  end
  return coroutine.wrap(nest)(n - 1) .. n
end
check.equal(nest(5), "bottom12345")
local run = flow.op("NestOp", function(ctx) ctx:set("result", nest(20)) end):run()
assert(run.ok, run.error)
check.equal(run.data.result, "bottom" .. "1234567891011121314151617181920")
