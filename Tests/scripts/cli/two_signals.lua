-- After a Ctrl-C, SIGTERM is the second signal, which ends the process at once and says so.
-- clock: real: signals of the system
local check, host, flow = require "check", require "host", require "flow"

local function ended(signals)
  local program = flow.exec({ host.binary, "-e", [[
    local flow = require "flow"
    io.stdout:setvbuf "no"
    flow.op("WaitOp", function(ctx)
      ctx:defer(function() print "cleaning" flow.sleep(60) end)
      print "ready"
      flow.sleep(60)
    end):run()
  ]] }, { check = false })
  local lines = program:lines()
  check.equal(lines(), "ready")
  for k, name in ipairs(signals) do
    flow.exec { "kill", "-" .. name, tostring(program.pid) }:await()
    if k == 1 then check.equal(lines(), "cleaning") end
  end
  program:wait()
  return program
end

local program = ended { "INT", "TERM" }
check.equal(program.signal, 15)
check.equal(program.stderr, "flowlua: terminated again: cleanups were cut\n")
program = ended { "INT", "INT" }
check.equal(program.signal, 2)
check.equal(program.stderr, "flowlua: interrupted again: cleanups were cut\n")
program = ended { "TERM", "INT" }
check.equal(program.signal, 2)
-- A terminal that is closed meanwhile cuts nothing.
program = ended { "INT", "HUP", "TERM" }
check.equal(program.signal, 15)
