-- A kept run that hasn't finished says at the end of the process how it continues, and no other one does.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local text = [[
local FirstOp = flow.op("FirstOp", function() end)
local LastOp = flow.op("LastOp", function(ctx)
  local how = os.getenv "HOW"
  if how == "fail" then ctx:fail "no" end
  if how == "exit" then os.exit(0) end
  if how == "exit 3" then os.exit(3) end
  if how == "exit false" then os.exit(false) end
  if how == "wait" then effect "waiting" flow.sleep(600) end
end)
if os.getenv "HOW" == "nothing" then error "early" end
flow.new("work"):add(FirstOp):add(LastOp):run()
if os.getenv "HOW" == "error" then error "late" end
if os.getenv "HOW" == "late exit 3" then os.exit(3) end
]]

-- The hint of the last line on stderr about a kept run.
local function hint(result) return result.stderr:match "flowlua: (run %w+ is kept;[^\n]*)\n$" end

local script, id
local function expects(status, option, options, how)
  options.environment = { HOW = how }
  local result = script:run(options)
  check.equal(result.status, status, result.stderr)
  id = script:run({ "--runs" }).stdout:match "\n(r%w+)[^\n]*\n$"
  check.equal(hint(result), option and ("run %s is kept; %s continues it"):format(id, option:gsub("ID", id)) or nil,
    how .. " " .. table.concat(options, " "))
  check.equal(select(2, result.stderr:gsub("is kept;", "")), option and 1 or 0)
end

-- Failures and errors, whether an option or the script asks for the keeping; and `os.exit` in an op, which pauses the run.
script = kept.script(text)
for _, case in ipairs {
  { "error", 1 }, { "exit", 0 }, { "exit 3", 3 }, { "exit false", 1 }, { "late exit 3", 3 }, { "fail", 1 },
} do
  local how, status = table.unpack(case)
  local state = how:find "^exit" and "unfinished" or "failed"
  for _, option in ipairs { "--keep", "--resume" } do
    -- A process that has itself chosen to pause says nothing.
    expects(status, status > 0 and "--resume" or nil, { option }, how)
    check.match(script:run({ "--runs" }).stdout, "\n" .. id .. " +" .. state .. " ")
  end
end
expects(1, "--resume=ID", { "--resume=" .. id }, "fail")
expects(1, "--resume", { "--from", "LastOp" }, "fail")

-- A process that only rehearses, has begun no run, or has finished, says nothing.
for _, options in ipairs { { "--why" }, { "--check" }, { "--only", "LastOp" } } do
  script:run { "--keep", environment = { HOW = "fail" } }
  expects(options[1] == "--only" and 1 or 0, nil, options, "fail")
end
expects(1, nil, { "--keep" }, "nothing")
expects(0, nil, { "--resume" }, "no")
expects(1, nil, {}, "fail")

script = kept.script("flow.keep()\n" .. text)
expects(1, "--resume", {}, "fail")
script = kept.script(text:gsub(":run%(%)", ":run(nil, { keep = true })"))
expects(1, "--resume", {}, "fail")

-- Signals.
for signal, status in pairs { INT = 130, TERM = 75, HUP = 129 } do
  script = kept.script(text)
  local program = script:start { "--keep", environment = { HOW = "wait" } }
  kept.waits(function() return flow.fs.exists(script.folder .. "/effects") end)
  flow.exec({ "kill", "-" .. signal, tostring(program.pid) }):await()
  local result = program:await()
  check.equal(result.status, status)
  check.match(hint(result) or "", "^run r%w+ is kept; %-%-resume continues it")
  check.match(script:run({ "--resume" }).stderr, "^%S+: r%w+: %d kept[^\n]* again: [^\n]+\n$")
end
