-- A busy cleanup has the op's grace, counted from the timeout of the enclosing flow.
-- clock: real: busy code is stopped by the machine's clock
-- expect-status: 1
-- expect-stdout:
--| failed	[outer/inner] timed out after 0.02s
--| BusyOp	withError: the cleanup of [BusyOp] at Tests/scripts/stop/busy_cleanup.lua:12 was cut after a grace of 0.5s, while it was busy
--| inner	timedOut after 0.02s
--| true
-- expect-stderr: outer failed: the cleanup of [BusyOp] at Tests/scripts/stop/busy_cleanup.lua:12 was cut
local flow = require "flow"
local BusyOp = flow.op("BusyOp", function(ctx)
  ctx:defer(function() while true do end end)
end)
local inner = flow.new("inner"):add(BusyOp, { grace = 0.5 })
local run = flow.new("outer"):add(inner, { timeout = 0.02 }):run()
print(run.state, run.error)
for _, event in ipairs(run:events()) do
  if event.kind == "finish" then print(event.op, event.message) end
end
print(run.duration >= 0.52 and run.duration < 20)
