-- A timeout that nobody asked about is told at the end, with what it was.
-- expect-status: 1
-- expect-stderr: timed out after 0.01s
local flow = require "flow"
flow.new("slow"):add(flow.op("SlowOp", function() flow.sleep(10) end), { timeout = 0.01 }):run()
