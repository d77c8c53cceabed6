-- ctx has the fields name, attempt, index and run.
local flow, check = require "flow", require "check"
local seen
local LookOp = flow.op("LookOp", function(ctx) seen = { ctx.name, ctx.attempt, ctx.index, ctx.run } end)
local run = flow.new("look"):add(LookOp):run()
check.equal(seen[1], "LookOp")
check.equal(seen[2], 1)
check.equal(seen[3], nil)
check.equal(seen[4].id, run.id)
check.equal(seen[4].name, "look")
