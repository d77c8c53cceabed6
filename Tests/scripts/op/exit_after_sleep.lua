-- os.exit closes the state also in an op that has waited.
-- expect-status: 9
-- expect-stdout:
--| before
local flow = require "flow"
flow.op("ExitOp", function()
  flow.sleep(0.001)
  print("before")
  os.exit(9, true)
end):run()
print("never")
