-- The tree says which program or request an op is waiting for.
-- python: pyte
-- clock: real: the terminal is another program
local check, terminal = require "check", require "terminal"

local session = terminal.start [[
  local BuildOp = flow.op("BuildOp", function()
    local make = flow.exec { "sleep", "100.25" }
    pause(1)
    local other = flow.exec { "sleep", "100.5" }
    pause(2)
    make:cancel()
    other:cancel()
    pcall(make.await, make)
    pcall(other.await, other)
    pause(3)
  end)
  flow.new("work"):add(BuildOp):run()
]]
session:expect "\n└─ BuildOp [%dm ]+s, sleep 100%.25$"
session:go(1)
session:expect "\n└─ BuildOp [%dm ]+s, sleep 100%.5 and 1 more$"
session:go(2)
session:expect "\n└─ BuildOp [%dm ]+s$"
session:go(3)
local _, status = session:finish()
check.equal(status, 0)
