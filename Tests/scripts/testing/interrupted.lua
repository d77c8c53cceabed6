-- Ctrl-C ends a waiting test, and SIGTERM ends the whole script, with its cleanups.
local host, check = require "host", require "check"
local script = [[
  local flow, testing = require "flow", require "flow.testing"
  local WaitOp = flow.op("WaitOp", function(ctx)
    ctx:defer(function() io.stdout:write("cleanup\n") end)
    flow.exec { "sh", "-c", "sleep 0.1; kill -%s $PPID; sleep 10" }:await()
  end)
  print(pcall(testing.run, WaitOp, { exec = "real" }))
  print(testing.run(flow.ops.SleepOp(3)).duration)
]]
local result = host.script(script:format("INT"))
check.contains(result.stdout, "cleanup\n", "interrupted!", "3.0\n")
result = host.script(script:format("TERM"))
check.contains(result.stdout, "cleanup\n")
check.lacks(result.stdout, "3.0")
