-- A script ends when all it started has settled.
-- expect-stdout:
--| main ends
--| op ends
--| finished
local flow = require "flow"
flow.new("slow")
  :add(flow.op("SlowOp", function() flow.sleep(0.02) print("op ends") end))
  :did_finish(function() print("finished") end)
  :start()
print("main ends")
