-- Values and keys may be of any length.
local flow, check = require "flow", require "check"
local long = ("0123456789"):rep(100000)
local run = flow.op("LongOp", function(ctx)
  ctx:set("value", long)
  ctx:set(long, true)
  check.equal(ctx:get("value"), long)
  check.equal(ctx:get(long), true)
end):run()
assert(run.ok, run.error)
check.equal(run.data.value, long)
