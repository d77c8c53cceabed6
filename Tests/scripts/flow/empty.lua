-- A flow without ops succeeds.
local flow, check = require "flow", require "check"
local run = flow.new("empty"):run()
check.equal(run.ok, true)
check.equal(run.error, nil)
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
T [DataBucket] end with:
Flow isSuccess: true
======    Ending    ======
]])
