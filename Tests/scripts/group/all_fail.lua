-- A group whose items all fail has an empty list as output.
local flow, check = require "flow", require "check"
local FailOp = flow.op("FailOp", {
  needs = { n = "integer" }, gives = { out = "any" }, run = function(ctx) ctx:fail("no " .. ctx.index) end,
})
local run = flow.new("all"):data { list = { 1, 2 } }
  :add_grouped(FailOp, { input = "list", output = "outs", allow_failure = true, failures = "failed" }):run()
assert(run.ok, run.error)
check.same(run.data.outs, {})
check.equal(#run.data.failed, 2)
check.equal(tostring(run.data.failed[2].error), "[all/FailOp #2] no 2")
