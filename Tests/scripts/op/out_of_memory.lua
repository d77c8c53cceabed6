-- A text that no memory can hold fails its op, not the host.
local flow, check = require "flow", require "check"
local run = flow.op("HugeOp", function() return ("x"):rep(1 << 60) end):run()
check.equal(run.ok, false)
check.equal(run.error.kind, "error")
assert(flow.op("SmallOp", function() end):run().ok)
