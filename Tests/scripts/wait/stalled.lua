-- A run that waits for itself fails, and its waiters continue.
local flow, check = require "flow", require "check"
local run = flow.op("SelfOp", function(ctx) flow.sleep(0.001) ctx.run:wait() end):run()
check.equal(run.state, "failed")
check.equal(run.error.kind, "stalled")
check.equal(run.error.message, "stalled: [SelfOp] never finished")
check.contains(run:summary(), "[SelfOp] DidFinish: withError: stalled: [SelfOp] never finished\n")
-- Of two that wait for each other the younger one fails.
local old, young
old = flow.op("OldOp", function() flow.sleep(0) young:wait() end):start()
young = flow.op("YoungOp", function() flow.sleep(0) old:wait() end):start()
check.equal(old:wait(), true)
check.equal(old.state, "succeeded")
check.equal(young.error.message, "stalled: [YoungOp] never finished")
