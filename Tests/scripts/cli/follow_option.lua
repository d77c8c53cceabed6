-- The option --follow prints each line of the summaries to stderr as it happens.
local check, host = require "check", require "host"

local function follow(text, options)
  options = options or {}
  options.before = options.before or { "--follow", "--virtual-clock" }
  return host.script("local flow = require 'flow'\n" .. text, {}, options)
end

-- The lines are those of the summary, each at its time.
local result = follow [[
  local names = { "a", "b\27[31m\nc", "no \xff UTF-8", ("x"):rep(300) }
  local ItemOp = flow.op("ItemOp", { thread = "worker", needs = { name = "string" }, run = function(ctx)
    ctx:log("name: " .. ctx:get "name")
    if ctx.index == 2 then error("second", 0) end
  end })
  local TryOp = flow.op("TryOp", { retry = { attempts = 2, delay = 1 }, run = function(ctx)
    ctx:set("attempt", ctx.attempt)
    io.stderr:write("in the op\n")
    if ctx.attempt == 1 then error("again", 0) end
  end })
  local run = flow.new("all"):add(TryOp):add_grouped(ItemOp, { input = "names", allow_failure = true,
    label = function(name) return name end }):run { names = names, key = flow.secret "hunter2", k = "hunter2" }
  print(run:summary())
]]
check.equal(result.status, 0)
local shown = result.stderr:gsub("in the op\n", "")
check.equal(shown, result.stdout:sub(1, -2))
check.contains(shown, '[ItemOp #2 b\\x1B[31m\\nc] DidFinish: withError: second\n', "k: <redacted>\nkey: <redacted>\n")
check.lacks(shown, "hunter2")
assert(result.stderr:find "WillStart\n[^\n]* add for attempt: 1\nin the op\n[^\n]*Retry 2/2")

-- From the moment when two runs are open, each line names its run.
result = follow [[
  local function sleeps(seconds) return function() flow.sleep(seconds) end end
  local function op(name, seconds) return flow.op(name, sleeps(seconds)) end
  flow.op("OuterOp", function() op("In\nner", 1):run() end):run()
  op("SameOp", 1):start()
  op("SameOp", 2):start()
]]
check.equal(check.masked(result.stderr), [[
====== Flow Summary ======
T [DataBucket] start with:
T [OuterOp] WillStart
T [OuterOp/In\nner] WillStart
In\nner | ====== Flow Summary ======
In\nner | T [DataBucket] start with:
In\nner | T [In\nner] WillStart
In\nner | T [In\nner] DidFinish: successfully
In\nner | T [DataBucket] end with:
OuterOp | T [OuterOp/In\nner] DidFinish: successfully
In\nner | Flow isSuccess: true
In\nner | ======    Ending    ======
OuterOp | T [OuterOp] DidFinish: successfully
OuterOp | T [DataBucket] end with:
OuterOp | Flow isSuccess: true
OuterOp | ======    Ending    ======
====== Flow Summary ======
T [DataBucket] start with:
T [SameOp] WillStart
SameOp #4 | ====== Flow Summary ======
SameOp #4 | T [DataBucket] start with:
SameOp #4 | T [SameOp] WillStart
SameOp #3 | T [SameOp] DidFinish: successfully
SameOp #3 | T [DataBucket] end with:
SameOp #3 | Flow isSuccess: true
SameOp #3 | ======    Ending    ======
SameOp #4 | T [SameOp] DidFinish: successfully
SameOp #4 | T [DataBucket] end with:
SameOp #4 | Flow isSuccess: true
SameOp #4 | ======    Ending    ======
]])

-- Colours come with a terminal, and --color and NO_COLOR decide about them. A terminal gets no control
-- characters of the script.
local text = "require 'flow'.op('BadOp', function(ctx) ctx:log('a\\27[2Jb\\tc') error('bad', 0) end):start():await()"
local function terminal(options, environment)
  return host.run("script", { "-qec", host.binary .. " " .. options .. [[ -e "$TEXT"]], "/dev/null" }, {
    environment = { TEXT = text, SHELL = "/bin/sh", TERM = environment.TERM or "xterm",
      NO_COLOR = environment.NO_COLOR or "" },
  }).stdout
end
local red = "\27[31m"
for options, environment in pairs {
  ["--follow"] = {}, ["--follow --color=auto"] = {}, ["--follow --color=always"] = { NO_COLOR = "1" },
} do
  local output = terminal(options, environment)
  check.contains(output, red, "M [BadOp] DidFinish: withError: bad\27[0m", "[BadOp] a\\x1B[2Jb\\tc")
  check.lacks(output, "\27[2J")
end
for options, environment in pairs {
  ["--follow"] = { NO_COLOR = "1" }, ["--follow --color auto"] = { TERM = "dumb" }, ["--follow --color=never"] = {},
} do
  local output = terminal(options, environment)
  check.contains(output, "[BadOp] DidFinish: withError: bad", "[BadOp] a\\x1B[2Jb\\tc")
  -- No colour: the line of what executes, which a slow machine shows, moves the cursor.
  check.equal(output:find "\27%[[%d;]*m", nil)
end
for options, colored in pairs { ["--color=auto"] = false, ["--color=always"] = true } do
  local output = host.run(host.binary, { "--follow", options, "-e", text }).stderr
  check.equal(output:find(red, 1, true) ~= nil, colored)
end

-- The lines stand above the progress, which is removed before each of them.
text = [[local flow = require 'flow'
  flow.op('CountOp', function(ctx)
    for n = 1, 3 do ctx:progress(n, 10) ctx:log('at ' .. n) flow.sleep(0.3) end
  end):run() ]]
local output = terminal("--follow --color=never", {})
assert(output:find "CountOp [^\n]*%d/10.*\r\27%[J", output)
for n = 1, 3 do assert(output:find("[\nJ]%d+:%d+:%d+ [AP]M %[CountOp%] at " .. n .. "\r\n"), output) end
check.contains(terminal("--follow --no-progress", {}), "at 3")
