-- Parallel ops run at the same time over the same data.
local flow, check = require "flow", require "check"
local function slow(name, seconds, body)
  return flow.op(name, function(ctx) flow.sleep(seconds) return body and body(ctx) end)
end

local run = flow.new("both"):data { x = 1 }
  :add_parallel(
    slow("LateOp", 0.02, function(ctx) ctx:set("x", 2) end),
    slow("EarlyOp", 0.001, function(ctx) ctx:set("x", 3) end))
  :run()
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
x: 1
T [LateOp] WillStart
T [EarlyOp] WillStart
T [DataBucket] replace for x: 1 -> 3
T [EarlyOp] DidFinish: successfully
T [DataBucket] replace for x: 3 -> 2
T [LateOp] DidFinish: successfully
T [DataBucket] end with:
x: 2
Flow isSuccess: true
======    Ending    ======
]])

local raised = {}
run = flow.new("failing")
  :add_parallel(slow("LateOp", 10), slow("BadOp", 0.001, function() error(raised) end),
    flow.new("inner"):add(slow("InnerOp", 10)))
  :add(flow.op("NeverOp", function() error("it ran") end))
  :run()
check.equal(run.error.op, "BadOp")
check.equal(run.error.cause, raised)
check.contains(check.masked(run:summary()), [[
T [Group] not allow failure in group. stop immediately.
T [LateOp] DidFinish: cancelled: group failed
T [InnerOp] DidFinish: cancelled: group failed
T [inner] DidFinish: cancelled: group failed
T [DataBucket] end with:
Flow isSuccess: false
]])

local AnOp = flow.op("AnOp", function() end)
local blueprint = flow.new("misuse")
check.usage(function() blueprint:add_parallel() end, "'add_parallel'", "#1", "op")
check.usage(function() blueprint:add_parallel(AnOp, nil) end, "'add_parallel'", "#2", "op", "nil")
check.usage(function() blueprint:add_parallel(AnOp, print) end, "'add_parallel'", "#2", "function")
check.usage(function() blueprint:add_parallel { AnOp, AnOp } end, "'add_parallel'", "#1", "table")
