-- `--completions bash` prints completions of a script's commands, which bash takes, and runs nothing.
-- clock: real: programs run
local check, host, flow = require "check", require "host", require "flow"

local dir = flow.fs.temp_dir()
local script = dir .. "/release it.lua"
flow.fs.write(script, [[
local flow = require "flow"
local DeployOp = flow.op("DeployOp", { needs = { version = { "string", "v", values = { "1.1", "1.2" } }, dry_run = "boolean",
  host = "string?" }, run = function() print "ran" end })
local RollbackOp = flow.op("RollbackOp", function() print "ran" end)
flow.main { DeployOp, RollbackOp }]])
local made = host.run(host.binary, { "--completions", "bash", script })
check.equal(made.stderr, "")
check.lacks(made.stdout, "ran\n")
flow.fs.write(dir .. "/completions", made.stdout)

local function complete(...)
  local words = { "release it.lua", ... }
  local set = "source '" .. dir .. "/completions'; COMP_WORDS=("
  for _, word in ipairs(words) do set = set .. " '" .. word .. "'" end
  set = set .. "); COMP_CWORD=" .. #words - 1 .. "; $(complete -p 'release it.lua' | grep -o '_[a-z_]*lua'); "
  return host.run("bash", { "-c", set .. [[printf '%s ' "${COMPREPLY[@]}"]] }).stdout
end
check.equal(complete "", "deploy rollback --help ")
check.equal(complete "d", "deploy ")
check.equal(complete("deploy", "--d"), "--dry-run ")
check.equal(complete("deploy", "--version", ""), "1.1 1.2 ")
check.equal(complete("rollback", ""), "--help ")

-- Where there are none.
local function refused(status, message, ...)
  local result = host.run(host.binary, { ... })
  check.equal(result.status, status)
  check.contains(result.stderr, message)
end
refused(2, "option '--completions': bash expected, got 'zsh'", "--completions", "zsh", script)
refused(2, "option '--completions' needs a script", "--completions", "bash")
flow.fs.write(script, "print 'no commands'")
refused(1, "no completions: the script doesn't call flow.main", "--completions", "bash", script)
flow.fs.write(script, "require 'flow'.exec { 'touch', '" .. dir .. "/touched' }")
refused(1, "calls 'exec'", "--completions", "bash", script)
check.equal(flow.fs.exists(dir .. "/touched"), false)
