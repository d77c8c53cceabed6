-- The first failure ends the flow, and later ops don't run.
local flow, check = require "flow", require "check"
local ran = {}
local StepOp = flow.op("StepOp", function(ctx, n)
  ran[#ran + 1] = n
  if n == 2 then ctx:fail("at two") end
end)
local run = flow.new("steps"):add(StepOp(1)):add(StepOp(2)):add(StepOp(3)):run()
check.same(ran, { 1, 2 })
check.equal(run.ok, false)
check.equal(run.error.message, "at two")
check.contains(check.masked(run:summary()), [[
T [StepOp] DidFinish: withError: at two
T [DataBucket] end with:
Flow isSuccess: false
]])
