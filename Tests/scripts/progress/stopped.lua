-- After Ctrl-S the tree stands still, and the script continues; Ctrl-Q shows what has happened meanwhile.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow, terminal = require "check", require "flow", require "terminal"

local session = terminal.start([[
  local WorkOp = flow.op("WorkOp", function(ctx)
    pause(1)
    local run = flow.op("FailOp", function() error("in between", 0) end):start()
    pcall(run.await, run)
    for i = 1, 50 do ctx:progress(i, 50) flow.sleep(0.01) end
    flow.fs.write(arg[1] .. "over", "")
    pause(2)
  end)
  WorkOp:run()
]], { options = { "--color=never" } })
session:expect "^WorkOp [%dm ]+s$"
session:type "\19"
-- The terminal gets it a little later.
flow.sleep(0.05)
session:go(1)
local deadline = flow.now() + 60
while not flow.fs.exists(session.folder .. "/goover") do
  assert(flow.now() < deadline, "the script waits for the terminal")
  flow.sleep(0.01)
end
check.lacks(session:text(), "FailOp", "50/50")
session:type "\17"
session:expect "WorkOp/FailOp failed: in between\nWorkOp [█]+ 50/50 100%% [%dm ]+s$"
session:go(2)
assert(session:finish():find "FailOp failed: in between$")
