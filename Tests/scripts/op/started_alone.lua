-- An op can be started alone, with data.
local flow, check = require "flow", require "check"
local AddOp = flow.op("AddOp", {
  needs = { a = "number", b = "number" }, gives = { sum = "number" },
  run = function(ctx, more) ctx:set("sum", ctx:get("a") + ctx:get("b") + (more or 0)) end,
})
local run = AddOp:run { a = 1, b = 2 }
check.equal(run.ok, true)
check.equal(run.data.sum, 3)
run = AddOp(10):start { a = 1, b = 2.5 }
run:wait()
check.equal(run.data.sum, 13.5)
check.contains(run:summary(), "[AddOp] WillStart", "[AddOp] DidFinish: successfully")
run = AddOp:run()
check.equal(run.ok, false)
check.equal(run.error.kind, "insufficient_input")
