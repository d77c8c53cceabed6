-- The first signal while the cleanups follow the failure of the main chunk cuts none of them.
-- clock: real: signals of the system
local check, host = require "check", require "host"

local SCRIPT = [[
  local flow = require "flow"
  io.stdout:setvbuf "no"
  flow.new("p"):add(flow.op("CleanOp", function(ctx)
    ctx:defer(function() print "ready" flow.sleep(%s) print "cleaned" end)
    flow.sleep(100)
  end)):start()
  flow.sleep(0)
  error "failed"]]
-- Longer than anybody's patience with a function of C.
local ended = host.signalled(host.binary, { "-e", SCRIPT:format "3.5" }, "TERM")
check.equal(ended.status, 143)
check.contains(ended.stdout, "failed\n", "ready\ncleaned\n")
check.lacks(ended.stdout, "function of C")

for signal, status in pairs { INT = 130, HUP = 129 } do
  local result = host.signalled(host.binary, { "-e", SCRIPT:format "0.5" }, signal)
  check.equal(result.status, status, signal)
  check.contains(result.stdout, "ready\ncleaned\n")
end
-- The second one cuts them.
for signal, status in pairs { INT = 130, TERM = 143 } do
  local result = host.signalled(host.binary, { "-e", SCRIPT:format "30" }, signal .. " " .. signal)
  check.equal(result.status, status, signal)
  check.contains(result.stdout, "again: cleanups were cut")
end
