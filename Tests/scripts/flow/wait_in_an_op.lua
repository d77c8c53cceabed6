-- An op may wait for another run, and both continue.
local flow, check = require "flow", require "check"
local InnerOp = flow.op("InnerOp", function(ctx) flow.sleep(0.002) ctx:set("x", 42) end)
local OuterOp = flow.op("OuterOp", function(ctx)
  local run = flow.new("inner"):add(InnerOp):run()
  ctx:set("from_inner", run.data.x)
end)
local run = flow.new("outer"):add(OuterOp):run()
assert(run.ok, run.error)
check.equal(run.data.from_inner, 42)
check.equal(run.data.x, nil)
