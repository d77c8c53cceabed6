-- :add accepts only ops.
local flow, check = require "flow", require "check"
local blueprint = flow.new("misuse")
check.usage(function() blueprint:add() end, "'add'", "#1", "op")
check.usage(function() blueprint:add(nil) end, "'add'", "#1", "op", "nil")
check.usage(function() blueprint:add(function() end) end, "'add'", "#1", "op", "function")
check.usage(function() blueprint:add(42) end, "'add'", "#1", "op", "number")
check.usage(function() blueprint:add("AnOp") end, "'add'", "#1", "op", "string")
check.usage(function() blueprint:add({}) end, "'add'", "#1", "op", "table")
check.usage(function() blueprint:add(io.stdout) end, "'add'", "#1", "op")
check.usage(function() blueprint:add(flow) end, "'add'", "#1", "op", "table")
check.usage(function() blueprint.add(flow.op("AnOp", print)) end, "add")
-- Nothing of it was added.
assert(blueprint:run().ok)
