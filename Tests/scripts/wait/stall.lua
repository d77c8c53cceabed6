-- A run that nothing can end fails and names the waiting op.
local flow, check = require "flow", require "check"
local SelfOp = flow.op("SelfOp", function(ctx) ctx.run:wait() end)
local run = SelfOp:run()
check.equal(run.ok, false)
check.equal(run.error.kind, "stalled")
check.equal(run.error.message, "stalled: [SelfOp] never finished")
check.contains(run:summary(), "[SelfOp] DidFinish: withError: stalled: [SelfOp] never finished\n")
-- The outer run continues after the inner one has stalled.
local outer = flow.op("OuterOp", function(ctx)
  local inner = SelfOp:run()
  ctx:set("seen", inner.error.kind)
end):run()
assert(outer.ok, outer.error)
check.equal(outer.data.seen, "stalled")
