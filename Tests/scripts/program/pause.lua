-- A signal that pauses flowlua pauses its programs, and they continue with it.
-- clock: real: processes of the system
local check, host, flow = require "check", require "host", require "flow"

local function state(pid)
  local file <close> = assert(io.open("/proc/" .. pid .. "/stat"))
  return file:read "a":match "%) (%a)"
end
local function wait_for(pid, pattern)
  for _ = 1, 6000 do
    if state(pid):find(pattern) then return end
    flow.sleep(0.01)
  end
  error(("process %d is %s"):format(pid, state(pid)), 2)
end
local function send(name, pid) flow.exec { "kill", "-" .. name, tostring(pid) }:await() end

local paused = flow.exec { host.binary, "-e", [[
  local flow = require "flow"
  local program = flow.exec({ "sh", "-c", "echo $$; exec sleep 600" }, { check = false })
  local lines = program:lines()
  print((lines()))
  io.stdout:flush()
  program:wait()
  print(program.signal)
]] }
local lines = paused:lines()
local program = math.tointeger(tonumber((lines())))
for _ = 1, 2 do
  send("TSTP", paused.pid)
  wait_for(paused.pid, "T")
  wait_for(program, "T")
  send("CONT", paused.pid)
  wait_for(paused.pid, "[SR]")
  wait_for(program, "[SR]")
end
send("USR1", program)
check.equal((lines()), "10")
paused:await()
