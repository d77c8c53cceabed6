-- os.exit in an op ends the program at once.
-- expect-status: 7
-- expect-stdout:
--| before
local flow = require "flow"
local ExitOp = flow.op("ExitOp", function()
  print("before")
  os.exit(7)
end)
flow.new("exit"):add(ExitOp):run()
print("never")
