-- Simultaneous runs of one flow are independent.
local flow, check = require "flow", require "check"
local WaitOp = flow.op("WaitOp", function(ctx)
  ctx:set("mine", ctx:get("i"))
  flow.sleep(0.005)
  check.equal(ctx:get("mine"), ctx:get("i"))
  ctx:log("run " .. ctx:get("i"))
end)
local blueprint = flow.new("same"):add(WaitOp):add(WaitOp)
local runs = {}
for i = 1, 50 do runs[i] = blueprint:start { i = i } end
for i, run in ipairs(runs) do
  run:wait()
  assert(run.ok, run.error)
  check.equal(run.data.mine, i)
  check.contains(run:summary(), ("[WaitOp] run %d\n"):format(i))
end
