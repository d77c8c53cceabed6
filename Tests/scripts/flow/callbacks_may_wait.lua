-- Ops wait for will_start, and waiters of the run wait for did_finish.
local flow, check = require "flow", require "check"
local order = {}
local run = flow.new("waiting")
  :will_start(function() flow.sleep(0.002) order[#order + 1] = "will" end)
  :add(flow.op("AnOp", function() order[#order + 1] = "op" end))
  :did_finish(function() flow.sleep(0.002) order[#order + 1] = "did" end)
  :run()
check.equal(table.concat(order, " "), "will op did")
assert(run.ok)
