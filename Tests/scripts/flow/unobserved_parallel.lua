-- A failure among parallel ops that nobody asked about is told at the end, once.
-- expect-status: 1
-- expect-stderr: out of parallel
local flow = require "flow"
local BadOp = flow.op("BadOp", function() error("out of parallel") end)
flow.new("both"):add_parallel(BadOp, BadOp):add_finally(flow.op("CloseOp", function() end)):run()
