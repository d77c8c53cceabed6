-- A waiting coroutine is `normal` and can't be resumed or closed.
local flow, check = require "flow", require "check"
local co
local seen = {}
local WaitOp = flow.op("WaitOp", function(ctx)
  co = coroutine.create(function() flow.sleep(0.02) return "woken" end)
  ctx:set("result", select(2, coroutine.resume(co)))
end)
local LookOp = flow.op("LookOp", function()
  seen.status = coroutine.status(co)
  seen.resumed = { coroutine.resume(co) }
  seen.closed = { pcall(coroutine.close, co) }
end)
local waiting = flow.new("wait"):add(WaitOp):start()
assert(flow.new("look"):add(LookOp):run().ok)
waiting:wait()
assert(waiting.ok, waiting.error)
check.equal(waiting.data.result, "woken")
check.equal(seen.status, "normal")
check.equal(seen.resumed[1], false)
check.equal(seen.closed[1], false)
check.equal(coroutine.status(co), "dead")
