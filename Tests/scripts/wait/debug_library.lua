-- A wait leaves the script's hook and running coroutine unchanged.
local flow, check = require "flow", require "check"
local main = coroutine.running()
local run = flow.op("LookOp", function(ctx)
  local co, is_main = coroutine.running()
  flow.sleep(0.001)
  assert(rawequal(co, (coroutine.running())))
  ctx:set("is_main", is_main)
  ctx:set("yieldable", coroutine.isyieldable())
end):run()
assert(run.ok, run.error)
check.equal(run.data.is_main, false)
check.equal(run.data.yieldable, true)
assert(rawequal(main, (coroutine.running())) and select(2, coroutine.running()))
local counted = 0
debug.sethook(function() counted = counted + 1 end, "l")
local x = 1
flow.sleep(0.001)
x = x + 1
debug.sethook()
assert(counted >= 3, counted)
