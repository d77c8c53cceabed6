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
  local rest = {}
  for line in lines do rest[#rest + 1] = line:gsub("^.*flowlua: ", "") end
  program:wait()
  return program.signal, table.concat(rest, "\n")
end

for _, case in ipairs {
  { { "INT", "TERM" }, 15, "terminated again: cleanups were cut" },
  { { "INT", "INT" }, 2, "interrupted again: cleanups were cut" },
  { { "TERM", "INT" }, 2, "interrupted again: cleanups were cut" },
  -- A terminal that is closed meanwhile cuts nothing.
  { { "INT", "HUP", "TERM" }, 15, "terminated again: cleanups were cut" },
} do
  local signal, text = ended(case[1])
  check.equal(signal, case[2], table.concat(case[1], " "))
  check.equal(text, case[3])
end
