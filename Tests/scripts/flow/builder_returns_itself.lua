-- Builder methods change the flow and return it.
local flow = require "flow"
local AnOp = flow.op("AnOp", { needs = { x = "any" }, run = function() end })
local blueprint = flow.new("builder")
assert(rawequal(blueprint, blueprint:data { a = 1 }))
assert(rawequal(blueprint, blueprint:add(AnOp)))
assert(rawequal(blueprint, blueprint:add_grouped(AnOp, { input = "list" })))
assert(rawequal(blueprint, blueprint:will_start(function() end)))
assert(rawequal(blueprint, blueprint:did_finish(function() end)))
assert(#blueprint:dot() > 0)
