-- A run keeps its original blueprint.
local flow, check = require "flow", require "check"
local order = {}
local blueprint = flow.new("growing")
local SayOp = flow.op("SayOp", function(_, n) order[#order + 1] = n end)
local GrowOp = flow.op("GrowOp", function(ctx)
  blueprint:add(SayOp("new")):data { late = true }:did_finish(function() order[#order + 1] = "late" end)
  check.equal(ctx:has("late"), false)
end)
blueprint:add(GrowOp):add(SayOp("old"))
assert(blueprint:run().ok)
check.same(order, { "old" })
