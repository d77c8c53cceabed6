-- A nested flow that had succeeded is undone from inside when the outer one fails; one that fails undoes itself.
local flow, check = require "flow", require "check"

local undone = {}
local function op(name, fails)
  return flow.op(name, {
    run = function(ctx) if fails then ctx:fail("boom " .. name) end end,
    undo = function(ctx) undone[#undone + 1] = ctx.name .. " " .. ctx.error.message end,
  })
end

local inner = flow.new("inner"):add(op "AOp"):add(op "BOp"):with {
  undo = function(ctx) undone[#undone + 1] = "flow " .. ctx.name end,
}
local run = flow.new("outer"):add(op "FirstOp"):add(inner):add(op "LastOp"):add(op("FailOp", true)):run()
check.equal(run.ok, false)
check.same(undone, {
  "LastOp boom FailOp", "flow inner", "BOp boom FailOp", "AOp boom FailOp", "FirstOp boom FailOp",
})

-- The failing flow comes first, with its own final steps between.
undone = {}
local failing = flow.new("failing"):add(op "AOp"):add(op("BOp", true))
  :add_finally(flow.op("CloseOp", function() undone[#undone + 1] = "closed" end))
run = flow.new("outer"):add(op "FirstOp"):add(failing):run()
check.equal(run.error.message, "boom BOp")
check.same(undone, { "AOp boom BOp", "closed", "FirstOp boom BOp" })

-- So does a flow whose final step or output fails although its steps had succeeded; final steps stay.
undone = {}
run = flow.new("f"):add(op "AOp"):add_finally(op "KeptOp"):add_finally(op("EndOp", true)):run()
check.equal(run.error.message, "boom EndOp")
check.same(undone, { "AOp boom EndOp" })
undone = {}
run = flow.new("f"):gives { x = "string" }:add(op "AOp"):run()
check.equal(run.error.kind, "missing_output")
check.same(undone, { "AOp " .. run.error.message })

-- A flow is undone once, and one within a case too.
undone = {}
run = flow.new("f"):case("plan", "pro"):add(inner):otherwise():add(op "OtherOp"):combine()
  :add(op("FailOp", true)):run { plan = "pro" }
check.equal(run.ok, false)
check.same(undone, { "flow inner", "BOp boom FailOp", "AOp boom FailOp" })
