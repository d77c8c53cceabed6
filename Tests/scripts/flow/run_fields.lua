-- A run has a name, an outcome, its data and its duration.
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
check.equal(run.duration, 0.01)
check.equal(elapsed, 0.01)
check.equal(run:wait(), true)
