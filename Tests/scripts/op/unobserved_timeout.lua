-- An unobserved timeout is reported at the end, with its message.
-- expect-status: 1
-- expect-stderr: timed out after 5s
local flow = require "flow"
flow.new("slow"):add(flow.op("SlowOp", function() flow.sleep(10) end), { timeout = 5 }):run()
