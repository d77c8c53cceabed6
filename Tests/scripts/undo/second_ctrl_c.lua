-- Ctrl-C undoes what had succeeded, and a second one cuts the undos off at once.
-- clock: real: signals come from outside
local host, check = require "host", require "check"

local SCRIPT = [[
  local flow = require "flow"
  io.stdout:setvbuf "no"
  local function op(name, undo)
    return flow.op(name, { run = function() end, undo = undo })
  end
  flow.new("f")
    :add(op("BOp", function() print "undoing" flow.sleep(60) print "too late" end))
    :add(flow.op("WaitOp", function() print "ready" flow.sleep(60) end))
    :run()
]]
local name = os.tmpname()
local file = assert(io.open(name, "w"))
file:write(SCRIPT)
file:close()
for signal, status in pairs { INT = 130, TERM = 143 } do
  local result = host.signalled(host.binary, { name }, signal .. " " .. signal)
  check.equal(result.status, status)
  check.contains(result.stdout, "ready\n", "undoing\n", "again: cleanups were cut")
  check.lacks(result.stdout, "too late")
end
os.remove(name)
