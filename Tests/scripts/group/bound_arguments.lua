-- Each member receives the arguments bound to the op.
local flow, check = require "flow", require "check"
local AddOp = flow.op("AddOp", {
  needs = { n = "integer" }, gives = { sum = "integer" },
  run = function(ctx, more, _, last) ctx:set("sum", ctx:get("n") + more + last) end,
})
local run = flow.new("add"):data { list = { 1, 2, 3 } }
  :add_grouped(AddOp(10, nil, 100), { input = "list", output = "sums" }):run()
assert(run.ok, run.error)
check.same(run.data.sums, { 111, 112, 113 })
