-- Thousands of tests whose runs are kept share the resources of the system.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local runs, ids = {}, {}
local op = flow.new("flow"):add(flow.ops.SleepOp(1)):add(flow.op("AOp", function(ctx) ctx:set("a", 1) end))
for i = 1, 3000 do
  runs[i] = testing.run(op)
  assert(not ids[runs[i].id], "ids are unique")
  ids[runs[i].id] = true
end
for i = 1, 3000, 500 do
  check.equal(runs[i].duration, 1.0)
  check.equal(runs[i].data.a, 1)
  check.contains(runs[i]:summary(), "12:00:01 AM [SleepOp] DidFinish: successfully")
end
