-- An error in will_start fails the run before any op.
local flow, check = require "flow", require "check"
local ran, finished = false, false
local run = flow.new("failing")
  :will_start(function() error("not today", 0) end)
  :add(flow.op("AnOp", function() ran = true end))
  :did_finish(function(run) finished = run.ok end)
  :run()
check.equal(ran, false)
check.equal(finished, false)
check.equal(run.ok, false)
check.contains(run.error.message, "not today")
