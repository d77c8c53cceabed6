-- A summary can be requested at any time and changes nothing.
local flow, check = require "flow", require "check"
local during
local run = flow.new("view"):add(flow.op("LookOp", function(ctx)
  ctx:log("before")
  during = ctx.run:summary()
  ctx:log("after")
end)):run()
check.contains(during, "[LookOp] WillStart", "[LookOp] before")
check.lacks(during, "[LookOp] after")
check.equal(run:summary(), run:summary())
check.contains(run:summary(), "[LookOp] after")
