-- wait(seconds) returns whether the run has settled by then.
local flow, check = require "flow", require "check"
local run = flow.new("slow"):add(flow.op("SlowOp", function() flow.sleep(0.05) end)):start()
check.equal(run:wait(0.001), false)
check.equal(run:wait(0), false)
check.equal(run:wait(30), true)
check.equal(run:wait(0), true)
check.equal(run.ok, true)
