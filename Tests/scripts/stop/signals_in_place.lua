-- Ctrl-C and SIGTERM end waits below C functions and tests inside ops, and cleanups run.
local host = require "host"
local check = require "check"

local SCRIPT = [[
  local flow, testing = require "flow", require "flow.testing"
  io.stdout:setvbuf "no"
  local function sleep() print "ready" flow.sleep(60) end
  local positions = require "places"(sleep)
  function positions.test()
    testing.run(flow.op("InnerOp", function() print "ready" flow.exec { "sleep", "60" }:await() end),
      { exec = "real" })
  end
  function positions.busy_test()
    local run = testing.run(flow.op("InnerOp", function() print "ready" while true do end end))
    error(run.error)
  end
  flow.op("PlaceOp", function(ctx)
    ctx:defer(function() print "cleaned" end)
    if arg[2] == "later" then flow.sleep(0.001) end
    positions[arg[1] ]()
  end):start()
]]
local name = os.tmpname()
local file = assert(io.open(name, "w"))
file:write(SCRIPT)
file:close()

for _, position in ipairs { "sort", "load", "tostring", "close", "require", "test", "busy_test" } do
  for signal, expected in pairs { INT = 130, TERM = 143 } do
    for _, stretch in ipairs { "first", "later" } do
      local what = ("%s in %s, %s"):format(signal, position, stretch)
      local result = host.signalled(host.binary, { name, position, stretch }, signal)
      check.equal(result.status, expected, what)
      check.contains(result.stdout, "ready\ncleaned\n")
      if signal == "INT" then check.contains(result.stdout, "interrupted!") end
    end
  end
end
os.remove(name)
