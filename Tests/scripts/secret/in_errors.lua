-- Errors show no secret in message, log line, traceback and report, and the cause is unchanged.
local flow, check, host = require "flow", require "check", require "host"
local data = { password = flow.secret("hunter22") }
local function failing(body)
  local run = flow.op("FailOp", body):start(data)
  run:wait()
  check.lacks(run:summary(), "hunter22")
  check.lacks(run.error.traceback or "", "hunter22")
  return run.error
end

local e = failing(function(ctx) error("bad password " .. ctx:get("password")) end)
check.contains(e.message, "in_errors.lua:", ": bad password <redacted>")
check.equal(tostring(e), "[FailOp] " .. e.message)
check.contains(e.cause, "bad password hunter22")

local raised = setmetatable({}, { __tostring = function() return "object hunter22" end })
e = failing(function() error(raised) end)
check.contains(e.message, "object <redacted>")
assert(rawequal(e.cause, raised))

e = failing(function(ctx) ctx:fail("no " .. ctx:get("password"), { detail = flow.secret("hunter22") }) end)
check.equal(e.message, "no <redacted>")
check.equal(tostring(e.detail), "<redacted>")

e = failing(function(ctx) ctx:fail(flow.secret("hunter22")) end)
check.equal(e.message, "<redacted>")

e = failing(function(ctx) flow.sleep(0) error { ctx:get("password") } end)
check.contains(e.message, "{<redacted>}")

e = failing(function(ctx) ctx:get("password", "integer") end)
check.equal(e.message, "<password> in data bucket is <<redacted>> with type <string>, but NOT type <integer>.")

-- Its names neither.
local named = flow.op("Use hunter22", function(ctx) ctx:fail("no") end):start(data)
named:wait()
check.equal(named.error.op, "Use <redacted>")
check.equal(tostring(named.error), "[Use <redacted>] no")

-- One error is one table, wherever it is caught: what the script catches is redacted as well.
local caught
local run = flow.op("CatchOp", function(ctx)
  local _, raised_here = pcall(ctx.fail, ctx, "no " .. ctx:get("password"))
  caught = raised_here
end):run(data)
assert(rawequal(caught, run.error))
check.equal(caught.message, "no <redacted>")

-- An error that nobody observes is reported at exit, and so is an error of the main chunk.
for _, script in ipairs {
  [[local flow = require "flow"
  flow.op("FailOp", function(ctx) error("bad " .. ctx:get("p")) end):run { p = flow.secret("hunter22") }]],
  [[local flow = require "flow"
  local secret = flow.secret("hunter22") error("bad hunter22")]],
  [[local flow = require "flow"
  error(flow.secret("hunter22"))]],
} do
  local result = host.script(script)
  check.equal(result.status, 1)
  check.contains(result.stderr, "<redacted>")
  check.lacks(result.stderr, "hunter22")
end
