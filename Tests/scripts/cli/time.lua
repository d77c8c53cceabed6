-- --time=iso gives the lines of all summaries a date.
local check, host = require "check", require "host"

local text = [[
  local flow = require "flow"
  local run = flow.op("AOp", function() end):run()
  io.write(run:summary())
]]
local iso = "\n%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ %[AOp%] DidFinish"
for _, option in ipairs { "--summary", "--follow", "--grace=30" } do
  local result = host.script(text, {}, { before = { "--time=iso", option, "--virtual-clock" } })
  check.equal(result.status, 0)
  assert(result.stdout:find(iso), result.stdout)
  if option ~= "--grace=30" then assert(result.stderr:find(iso), result.stderr) end
end
local plain = host.script(text, {}, { before = { "--time", "clock", "--summary" } })
assert(plain.stderr:find "\n%d+:%d%d:%d%d [AP]M %[AOp%] DidFinish", plain.stderr)

local wrong = host.script(text, {}, { before = { "--time=utc" } })
check.equal(wrong.status, 2)
check.contains(wrong.stderr, "option '--time' takes 'clock' or 'iso', not 'utc'")
