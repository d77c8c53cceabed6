-- An unobserved failure is reported where the script calls os.exit too; requested files are written.
local check, host = require "check", require "host"

local failing = [[
  local flow = require "flow"
  local run = flow.op("UploadOp", function(ctx) ctx:fail "no network" end):run()
]]
for _, close in ipairs { "", ", true" } do
  local result = host.script(failing .. "os.exit(0" .. close .. ")")
  check.equal(result.status, 0)
  check.match(result.stderr, "UploadOp failed: %[UploadOp%] no network")
  check.equal(select(2, result.stderr:gsub("no network", "")), 1)
end
-- One that was looked at isn't, and the status is the script's.
local result = host.script(failing .. "os.exit(run.ok and 0 or 3)")
check.equal(result.stderr, "")
check.equal(result.status, 3)

-- Files are written even before the script uses flow.
for _, first in ipairs { "", "require 'flow' " } do
  local summary, report = os.tmpname(), os.tmpname()
  os.remove(summary)
  os.remove(report)
  result = host.run(host.binary, { "--report", report, "--summary=json:" .. summary, "-e", first .. "os.exit(3)" })
  check.equal(result.status, 3)
  check.equal(result.stderr, "")
  for _, name in ipairs { summary, report } do
    local file <close> = assert(io.open(name), name)
    os.remove(name)
  end
end
