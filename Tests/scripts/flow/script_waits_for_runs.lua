-- A script ends after all its runs have settled.
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
