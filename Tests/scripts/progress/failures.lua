-- Of many failures while a line of output is open the first hundred are printed, and the number of the others.
-- python: pyte
-- clock: real: the terminal is another program
local check, terminal = require "check", require "terminal"

local session = terminal.start([[
  io.write("half ")
  io.flush()
  local FailOp = flow.op("FailOp", { needs = { n = "integer" }, run = function(ctx) error("no " .. ctx.index, 0) end })
  local WaitOp = flow.op("WaitOp", { needs = { n = "integer" }, run = function(ctx)
    if ctx.index == 4 then print "a line" end
    if ctx.index > 3 then pause(100) end
  end })
  local numbers = {}
  for i = 1, 300 do numbers[i] = i end
  local run = flow.new("f"):data { numbers = numbers, few = { 1, 2, 3, 4, 5, 6, 7, 8 } }
    :add_grouped(FailOp, { input = "numbers", allow_failure = true })
    :add_grouped(WaitOp, { input = "few", max_concurrent = 2 }):start()
  pause(1)
  run:cancel()
  pcall(run.await, run)
]], { options = { "--color=never" } })
local text = session:expect "WaitOp [█▌░]+ 3/8 38%% 2 running"
local lines = {}
for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
check.equal(lines[1], "half a line")
for i = 1, 100 do check.equal(lines[i + 1], ("f/FailOp #%d failed: no %d"):format(i, i)) end
check.equal(lines[102], "… 200 more failures")
assert(lines[103]:find "^f 1/2 ", lines[103])
session:go(1)
text = session:finish()
assert(text:find "\n… 200 more failures\n✗ f/WaitOp 3/8, 5 stopped after [%dms .]+$", text)
