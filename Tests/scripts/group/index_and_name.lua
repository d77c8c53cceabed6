-- Members know their index and are named after it.
local flow, check = require "flow", require "check"
local seen = {}
local LookOp = flow.op("LookOp", {
  needs = { item = "any" }, run = function(ctx) seen[ctx.index] = { ctx.name, ctx.attempt } end,
})
assert(flow.new("look"):data { list = { "a", "b", "c" } }:add_grouped(LookOp, { input = "list" }):run().ok)
check.equal(#seen, 3)
for i = 1, 3 do check.same(seen[i], { "LookOp #" .. i, 1 }) end
