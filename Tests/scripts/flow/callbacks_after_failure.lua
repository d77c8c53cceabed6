-- did_finish is also called after a failure and sees the error.
local flow, check = require "flow", require "check"
local seen
flow.new("callbacks"):add(flow.op("FailOp", function(ctx) ctx:fail("no") end))
  :did_finish(function(run) seen = run.error.message end):run()
check.equal(seen, "no")
