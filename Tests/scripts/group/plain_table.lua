-- A plain table can replace a dispatcher.
local flow, check = require "flow", require "check"
local DoubleOp = flow.op("DoubleOp", {
  needs = { n = "integer" }, gives = { doubled = "integer" },
  run = function(ctx) ctx:set("doubled", ctx:get("n") * 2) end,
})
local run = flow.new("double"):data { list = { 1, 2, 3 } }
  :add_grouped(DoubleOp, { input = "list", output = "result" }):run()
assert(run.ok, run.error)
check.same(run.data.result, { 2, 4, 6 })
