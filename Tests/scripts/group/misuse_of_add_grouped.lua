-- :add_grouped accepts only an op and a dispatcher or a table of its options.
local flow, check = require "flow", require "check"
local AnOp = flow.op("AnOp", { needs = { n = "any" }, run = function() end })
local blueprint = flow.new("misuse")
check.usage(function() blueprint:add_grouped() end, "add_grouped", "#1", "op")
check.usage(function() blueprint:add_grouped(nil, { input = "x" }) end, "add_grouped", "#1", "op", "nil")
check.usage(function() blueprint:add_grouped(print, { input = "x" }) end, "add_grouped", "#1", "op", "function")
check.usage(function() blueprint:add_grouped({}, { input = "x" }) end, "add_grouped", "#1", "op", "table")
check.usage(function() blueprint:add_grouped(AnOp) end, "add_grouped", "#2")
check.usage(function() blueprint:add_grouped(AnOp, "list") end, "add_grouped", "#2", "string")
check.usage(function() blueprint:add_grouped(AnOp, {}) end, "add_grouped", "input")
check.usage(function() blueprint:add_grouped(AnOp, { input = "x", ouput = "y" }) end, "add_grouped", "ouput")
check.usage(function() blueprint:add_grouped(AnOp, { input = "x", max_concurrent = 0 }) end, "add_grouped", "max_concurrent")
assert(blueprint:run().ok)
