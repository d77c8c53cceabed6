-- Starting an op runs it at once up to the first wait.
local flow, check = require "flow", require "check"
local order = {}
local StepOp = flow.op("StepOp", function()
  order[#order + 1] = "in op"
  flow.sleep(0)
  order[#order + 1] = "after the wait"
end)
order[1] = "before"
local run = flow.new("steps"):add(StepOp):start()
order[#order + 1] = "started"
run:wait()
check.equal(table.concat(order, ", "), "before, in op, started, after the wait")
