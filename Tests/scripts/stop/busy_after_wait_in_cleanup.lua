-- A cleanup that has waited, and is busy beyond its grace afterwards, is cut.
-- clock: real: busy code is stopped by the machine's clock
-- expect-status: 1
-- expect-stderr: LingerOp failed: the cleanup of [LingerOp] at Tests/scripts/stop/busy_after_wait_in_cleanup.lua:7 was cut
local flow, check = require "flow", require "check"
local LingerOp = flow.op("LingerOp", { grace = 0.3, run = function(ctx)
  ctx:defer(function()
    flow.sleep(0.1)
    while true do end
  end)
end })
local run = LingerOp:start()
flow.sleep(0.05)
run:cancel()
run:wait()
check.equal(run.state, "cancelled")
