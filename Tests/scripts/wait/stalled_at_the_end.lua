-- Runs that are stuck at the end of the script fail and are reported.
-- expect-status: 1
-- expect-stderr: FirstOp failed: [FirstOp] stalled: [FirstOp] never finished
-- expect-stderr: SecondOp failed: [SecondOp] stalled: [SecondOp] never finished
local flow = require "flow"
flow.op("FirstOp", function(ctx) flow.sleep(0.001) ctx.run:wait() end):start()
flow.op("SecondOp", function(ctx) ctx.run:wait() end):start()
