-- A cleanup that is busy when what is around its op times out has the grace period from then on.
-- expect-stdout:
--| failed	timed out after 0.02s
--| BusyOp	withError: a cleanup of [BusyOp] was closed after the grace period of 1s
--| inner	timedOut after 0.02s
local flow = require "flow"
local BusyOp = flow.op("BusyOp", function(ctx)
  ctx:defer(function() while true do end end)
end)
local inner = flow.new("inner"):add(BusyOp)
local run = flow.new("outer"):add(inner, { timeout = 0.02 }):run()
print(run.state, run.error)
for _, event in ipairs(run:events()) do
  if event.kind == "finish" then print(event.op, event.message) end
end
