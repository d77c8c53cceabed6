-- An item that a worker has executed is undone on the main thread, with the data that the worker has set.
-- clock: real: a virtual clock stands still while a worker runs
local flow, check = require "flow", require "check"

local undone = {}
local SquareOp = flow.op("SquareOp", {
  needs = { number = "integer" }, gives = { square = "integer" },
  thread = "worker",
  run = function(ctx) ctx:set("square", ctx:get("number") ^ 2 // 1 | 0) end,
  undo = function(ctx)
    undone[ctx.index or 0] = ctx:get("number") .. " " .. ctx:get("square", "integer")
  end,
})
local run = flow.new("f")
  :add_grouped(SquareOp, { input = "list", output = "squares", max_concurrent = 2 })
  :add(SquareOp, { thread = "worker" })
  :add(flow.op("FailOp", function(ctx) ctx:fail("boom") end))
  :run { list = { 1, 2, 3 }, number = 7 }
check.equal(run.error.message, "boom")
check.same(undone, { [0] = "7 49", "1 1", "2 4", "3 9" })
