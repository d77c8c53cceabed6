-- Keys that Unicode considers equivalent are different keys.
local flow, check = require "flow", require "check"
local composed, decomposed = "\u{E9}", "e\u{301}"
local run = flow.op("KeysOp", function(ctx)
  ctx:set(composed, 1)
  check.equal(ctx:has(decomposed), false)
  ctx:set(decomposed, 2)
  check.equal(ctx:get(composed), 1)
end):run()
assert(run.ok, run.error)
check.equal(run.data[composed], 1)
check.equal(run.data[decomposed], 2)
