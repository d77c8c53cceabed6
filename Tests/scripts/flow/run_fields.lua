-- What a run says of itself.
local flow, check = require "flow", require "check"
local before = flow.now()
local run = flow.new("fields"):data { a = 1 }:add(flow.op("WaitOp", function(ctx)
  flow.sleep(0.01)
  ctx:set("b", 2)
end)):start()
check.equal(run.name, "fields")
check.equal(run:wait(), true)
local elapsed = flow.now() - before
check.equal(run.ok, true)
check.equal(run.error, nil)
check.equal(run.data.a, 1)
check.equal(run.data.b, 2)
check.equal(run.data.c, nil)
check.equal(math.type(run.duration), "float")
assert(run.duration >= 0.0099 and run.duration <= elapsed + 0.001, run.duration)
check.equal(run:wait(), true)
