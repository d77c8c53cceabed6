-- A text too large for the memory fails its op, not the program.
local flow, check = require "flow", require "check"
local run = flow.op("HugeOp", function()
  local file <close> = assert(io.open("/dev/null"))
  return file:read(1 << 60)
end):run()
check.equal(run.ok, false)
check.equal(run.error.kind, "memory")
check.contains(run.error.message, "not enough memory")
assert(flow.op("SmallOp", function() end):run().ok)
