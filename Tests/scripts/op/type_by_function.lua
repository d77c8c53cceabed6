-- A function can be a type, and its second result is the reason in the message.
local flow, check = require "flow", require "check"
local function even(value) return math.type(value) == "integer" and value % 2 == 0, "even integer" end
local HalfOp = flow.op("HalfOp", {
  needs = { n = even }, gives = { half = "integer" },
  run = function(ctx) ctx:set("half", ctx:get("n") // 2) end,
})
check.equal(HalfOp:run { n = 4 }.data.half, 2)
local run = HalfOp:run { n = 5 }
check.equal(run.error.kind, "mismatched_input")
check.contains(run:summary(), "<n> in data bucket is <5> with type <integer>, but NOT type <even integer>.")
check.equal(HalfOp:run().error.kind, "insufficient_input")
