-- A class that needs no arguments is an op, and so is the result of calling it with none.
local flow, check = require "flow", require "check"
local count, arguments = 0, 0
local CountOp = flow.op("CountOp", function(_, ...)
  count, arguments = count + 1, arguments + select("#", ...)
end)
check.equal(flow.new("count"):add(CountOp):add(CountOp()):add(CountOp):run().ok, true)
check.equal(count, 3)
check.equal(arguments, 0)
