-- An unobserved failure among parallel ops is reported once, at the end.
-- expect-status: 1
-- expect-stderr: out of parallel
local flow = require "flow"
local BadOp = flow.op("BadOp", function() error("out of parallel") end)
flow.new("both"):add_parallel(BadOp, BadOp):add_finally(flow.op("CloseOp", function() end)):run()
