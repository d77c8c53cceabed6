-- A group reads a list that an earlier op set, and the next op reads its output.
local flow, check = require "flow", require "check"
local run = flow.new("chain")
  :add(flow.op("ListOp", function(ctx) ctx:set("list", { 3, 1, 2 }) end))
  :add_grouped(flow.op("SquareOp", {
    needs = { n = "integer" }, gives = { square = "integer" },
    run = function(ctx) flow.sleep(0.001) ctx:set("square", ctx:get("n") ^ 2 // 1 | 0) end,
  }), { input = "list", output = "squares" })
  :add(flow.op("SumOp", {
    needs = { squares = "integer[]" }, gives = { sum = "integer" },
    run = function(ctx)
      local sum = 0
      for _, n in ipairs(ctx:get("squares")) do sum = sum + n end
      ctx:set("sum", sum)
    end,
  })):run()
assert(run.ok, run.error)
check.equal(run.data.sum, 14)
