-- An error in the main chunk ends the script without waiting for its runs.
-- expect-status: 1
-- expect-stderr: error_cancels_runs.lua:10: out of the main chunk
-- expect-stdout:
--| op begins
local flow = require "flow"
local SlowOp = flow.op("SlowOp", function() print("op begins") flow.sleep(3600) print("never") end)
flow.new("slow"):add(SlowOp):start()
-- The main chunk's own error comes next.
error("out of the main chunk")
