-- `--resume` with a run that isn't there is a mistake of the command line, which nothing is executed for.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
flow.new("work"):add(flow.op("LastOp", function(ctx) effect "last" if os.getenv "FAIL" then ctx:fail "no" end end)):run()
]]
local function missing(options)
  options.environment = { FAIL = 1 }
  local result = script:run(options)
  check.equal(result.status, 2)
  check.equal(select(2, result.stderr:gsub("\n", "")), 1, result.stderr)
  return result.stderr
end
check.contains(missing { "--resume=zzz" }, "flowlua: option '--resume=zzz': there is no run 'zzz' in the store '",
  "; the script has none there\n")
script:run { "--keep", environment = { FAIL = 1 } }
script:run { "--keep" }
local first, second = script:run({ "--runs" }).stdout:match "\n(r%w+)[^\n]*\n(r%w+)"
for _, options in ipairs { {}, { "--why" }, { "--only", "LastOp" }, { "--from", "LastOp" } } do
  options[#options + 1] = "--resume=zzz"
  check.contains(missing(options), ("; the latest runs of the script: %s, %s\n"):format(first, second))
end
script:expect_effects("last", "last")
