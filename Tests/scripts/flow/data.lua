-- Data passed at the start replaces the flow's own data key by key.
local flow, check = require "flow", require "check"
local seen
local LookOp = flow.op("LookOp", function(ctx) seen = { ctx:get("a"), ctx:get("b"), ctx:get("c") } end)
local login = flow.new("data"):data { a = 1, b = 2, c = 3 }:add(LookOp)
login:run { b = "given" }
check.same(seen, { 1, "given", 3 })
login:run()
check.same(seen, { 1, 2, 3 })
