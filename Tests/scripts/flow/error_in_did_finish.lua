-- An error in did_finish is reported like an unobserved failure.
-- expect-status: 1
-- expect-stderr: after the end
-- expect-stdout:
--| true
local flow = require "flow"
local run = flow.new("failing")
  :add(flow.op("AnOp", function() end))
  :did_finish(function() error("after the end", 0) end)
  :run()
print(run.ok)
