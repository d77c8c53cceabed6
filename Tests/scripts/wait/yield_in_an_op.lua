-- A coroutine.yield of an op itself is an error there, not a hang.
local flow, check = require "flow", require "check"
local run = flow.op("YieldOp", function() coroutine.yield("to whom?") end):run()
check.equal(run.ok, false)
check.equal(run.error.kind ~= nil, true)
check.equal(flow.op("FineOp", function() end):run().ok, true)
