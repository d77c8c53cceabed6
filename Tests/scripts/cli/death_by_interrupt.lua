-- A script with flows that Ctrl-C has ended dies by SIGINT after its cleanups, so that the loop of a shell ends with it.
-- clock: real: signals of the system
local check, host = require "check", require "host"

local head = "io.stdout:setvbuf 'no' local flow = require 'flow' "
-- The signal that ended the process, its status, and its output.
local function ended(text)
  local flow = require "flow"
  local program = flow.exec({ host.binary, "-e", head .. text }, { check = false })
  for line in program:lines() do
    if line == "ready" then flow.exec { "kill", "-INT", tostring(program.pid) }:await() end
  end
  local result = program:await()
  return result.signal or result.status
end
local slow = [[flow.op("SlowOp", function(ctx)
  ctx:defer(function() flow.sleep(0.01) print "cleaned up" end)
  print "ready" flow.sleep(100) end)]]

check.equal(ended(slow .. ":run()"), 2)
check.equal(ended(slow .. ":start()"), 2)
check.equal(ended("print 'ready' while true do end"), 2)
check.equal(ended(slow:gsub("flow.sleep%(100%)", "while true do end") .. ":run()"), 2)
-- A script that handles it has its own status, also one of `os.exit`, and an error after it is an error.
check.equal(ended("pcall(function() print 'ready' flow.sleep(100) end) os.exit(7)"), 7)
check.equal(ended("pcall(function() print 'ready' flow.sleep(100) end)"), 0)
check.equal(ended("pcall(function() print 'ready' flow.sleep(100) end) error 'other'"), 1)
check.equal(ended("print 'ready' pcall(flow.sleep, 100) error('interrupted, too')"), 1)

-- The loop of a shell ends.
local output = os.tmpname()
local loop = host.run("bash", { "-c", [[
  set -m
  bash -c 'for i in 1 2 3; do echo run $i; "$0" -e "$1"; done' "$0" "$1" >"$2" &
  until grep -q ready "$2"; do sleep 0.01; done
  kill -s INT -- -$!
  wait $!
  grep -c run "$2"]], host.binary, head .. slow .. ":run()", output })
os.remove(output)
check.equal(loop.stdout, "1\n")
