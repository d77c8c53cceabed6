-- The message of an error object is its text, and a failing __tostring does no harm.
local flow, check = require "flow", require "check"
local function object(metatable) return setmetatable({ code = 7 }, metatable) end
local function fail_with(value) return flow.op("FailOp", function() error(value) end):run() end

local named = object { __tostring = function(self) return "code " .. self.code end }
local run = fail_with(named)
check.equal(run.error.message, "code 7")
assert(rawequal(run.error.cause, named))

for _, metatable in ipairs {
  { __tostring = function() error("in tostring") end },
  { __tostring = function() return 42 end },
  { __tostring = function() return nil end },
  { __tostring = "no function" },
  { __tostring = function() error() end },
  { __tostring = function(self) return tostring(self) end },
  { __name = "Named" },
  { __index = function() error("in index") end },
} do
  local value = object(metatable)
  run = fail_with(value)
  check.equal(run.ok, false)
  check.equal(run.error.kind, "error")
  assert(rawequal(run.error.cause, value))
  check.equal(type(run.error.message), "string")
  check.contains(run:summary(), "[FailOp] DidFinish: withError: ")
end
