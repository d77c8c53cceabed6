-- Methods of ctx fail after its op has finished.
local flow, check = require "flow", require "check"
local kept
assert(flow.op("KeepOp", function(ctx) kept = ctx ctx:set("x", 1) end):run().ok)
check.usage(function() kept:log("late") end, "log")
check.usage(function() kept:set("x", 2) end, "set")
check.usage(function() kept:get("x") end, "get")
check.usage(function() kept:has("x") end, "has")
check.usage(function() kept:fail("late") end, "fail")
