-- However a script ends, nothing of the tree remains on the terminal.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow, terminal = require "check", require "flow", require "terminal"

local script = [[
  local WaitOp = flow.op("WaitOp", function() pause(1) HOW end)
  local pid = io.open("/proc/self/stat"):read "n"
  io.open(arg[1] .. "pid", "w"):write(pid):close()
  flow.new("ending"):add_parallel(WaitOp, flow.ops.SleepOp(100), flow.ops.SleepOp(100)):run()
]]
local shown = "ending 0/3 [%dm ]+s\n├─ WaitOp [%dm ]+s\n├─ SleepOp [%dm ]+s\n└─ SleepOp [%dm ]+s$"

local function ending(how, act)
  local session = terminal.start((script:gsub("HOW", how)))
  session:expect(shown)
  act(session)
  local text, status = session:finish()
  check.lacks(text, "├", "└", "WaitOp 0s")
  return text, status
end

local function go(session) session:go(1) end

local text, status = ending("os.exit(3)", go)
check.equal(text, "")
check.equal(status, 3)
check.equal(select(2, ending("os.exit(4, true)", go)), 4)
text, status = ending("error('ended', 0)", go)
check.equal(status, 1)
check.contains(text, "ending/WaitOp failed: ended\n")
assert(not text:find("WaitOp failed.*WaitOp failed"), text)
text, status = ending("", function(session) session:type "\3" end)
check.equal(status, -2)
-- The path of the binary may fill the line.
check.contains(text:gsub("\n", ""), "interrupted!")
check.lacks(text, " failed: ")
text, status = ending("", function(session)
  flow.exec { "kill", "-TERM", flow.fs.read(session.folder .. "/gopid") }:await()
end)
check.equal(status, -15)
check.lacks(text, " failed: ")
