-- Reading .ok, .error or .state observes a failure.
local flow = require "flow"
local FailOp = flow.op("FailOp", function(ctx) ctx:fail("seen") end)
local failing = flow.new("failing"):add(FailOp)
assert(failing:run().ok == false)
assert(failing:run().error.message == "seen")
assert(failing:run().state == "failed")
