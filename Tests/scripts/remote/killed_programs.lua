-- A machine that is killed leaves none of the programs that its jobs have started, nor their child processes.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
local machine = server:join("m1")
local marker = "killed-programs-" .. server.port
local script = server:start(([[
  local Op = flow.op("LongOp", { thread = "remote", run = function(ctx)
    require "flow".exec({ "sh", "-c", "sleep 3600; :", %q }):await()
  end })
  Op:start()
  flow.sleep(3600)
]]):format(marker))

local function running(pattern)
  local found = flow.exec({ "pgrep", "-f", pattern }, { check = false }):await()
  return select(2, found.stdout:gsub("%d+", ""))
end
local function wait_for(count, pattern)
  for _ = 1, 1000 do
    if running(pattern) == count then return end
    flow.sleep(0.01)
  end
  check.equal(running(pattern), count, pattern)
end
wait_for(1, "sleep 3600; : " .. marker)
local child = flow.exec({ "pgrep", "-P", (flow.exec { "pgrep", "-f", "sleep 3600; : " .. marker }):await().stdout:match "%d+" }):await()
machine:signal "KILL"
wait_for(0, "sleep 3600; : " .. marker)
check.equal(flow.exec({ "kill", "-0", child.stdout:match "%d+" }, { check = false }):await().status, 1)
script:cancel()
