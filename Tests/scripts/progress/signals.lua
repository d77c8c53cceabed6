-- A second Ctrl-C or SIGTERM removes the tree before its message, and Ctrl-\ removes it, too.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow = require "check", require "flow"
local host, terminal = require "host", require "terminal"

local script = [[
  local pid = io.open("/proc/self/stat"):read "n"
  io.open(arg[1] .. "pid", "w"):write(pid):close()
  local WaitOp = flow.op("WaitOp", function(ctx)
    ctx:defer(function() io.open(arg[1] .. "cleanup", "w"):close() pause(1) end)
    WAIT
  end)
  flow.new("ending"):add(WaitOp):run()
]]
local shown = "ending [%dm ]+s\n└─ WaitOp [%dm ]+s$"

local function kill(session, name)
  flow.exec { "kill", "-" .. name, flow.fs.read(session.folder .. "/gopid") }:await()
end

-- The signal may also arrive amid code.
local busy = 'pause(2) io.open(arg[1] .. "busy", "w"):close() while true do end'

-- The key itself could discard the message: the kernel flushes the terminal after the signal.
for _, case in ipairs {
  { wait = "pause(1)", signal = "INT", text = "interrupted", status = -2 },
  { wait = "pause(1)", signal = "TERM", text = "terminated", status = -15 },
  { wait = busy, signal = "INT", text = "interrupted", status = -2 },
  { wait = busy, signal = "TERM", text = "terminated", status = -15 },
} do
  -- The message has the program's path, which mustn't be wrapped.
  local session = terminal.start(script:gsub("WAIT", case.wait), { columns = 1000 })
  session:expect(shown)
  if case.wait == busy then
    session:go(2)
    while not flow.fs.exists(session.folder .. "/gobusy") do flow.sleep(0.01) end
  end
  kill(session, case.signal)
  while not flow.fs.exists(session.folder .. "/gocleanup") do flow.sleep(0.01) end
  session:expect(shown)
  kill(session, case.signal)
  local text, status = session:finish()
  check.equal(text:match "[^\n]*$", host.binary .. ": " .. case.text .. " again: cleanups were cut")
  check.lacks(text, "└─")
  check.equal(status, case.status)
end

local session = terminal.start(script:gsub("WAIT", "pause(1)"), { environment = { SWIFT_BACKTRACE = "enable=no" } })
session:expect(shown)
session:type "\28"
local text, status = session:finish()
check.equal(text, "")
check.equal(status, -3)
