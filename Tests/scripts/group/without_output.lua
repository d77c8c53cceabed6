-- Without an output nothing is collected, and the size is the number of successes.
local flow, check = require "flow", require "check"
local OddOp = flow.op("OddOp", {
  needs = { n = "integer" }, run = function(ctx) if ctx:get("n") % 2 == 0 then ctx:fail("even") end end,
})
local run = flow.new("odd"):data { list = { 1, 2, 3, 4, 5 } }
  :add_grouped(OddOp, { input = "list", allow_failure = true }):run()
assert(run.ok, run.error)
check.contains(run:summary(), "[FlowArrayGroupDispatcher] all finished. output size: 3\n")
check.lacks(run:summary(), "[DataBucket] add for")
