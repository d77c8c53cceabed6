-- An error object whose __tostring raises itself or another error object fails the op.
local flow, check = require "flow", require "check"
local itself = setmetatable({}, { __tostring = error })
local function another() error(setmetatable({}, { __tostring = another })) end
for _, object in ipairs { itself, setmetatable({}, { __tostring = another }) } do
  local run = flow.op("RaiseOp", function() error(object) end):run()
  check.equal(run.error.kind, "error")
  assert(rawequal(run.error.cause, object))
  check.contains(run.error.message, "its __tostring failed")
  local logged = flow.op("LogOp", function(ctx) ctx:log(object) end):run()
  check.equal(logged.ok, false)
  check.equal(flow.op("FailOp", function(ctx) ctx:fail(object) end):run().ok, false)
  assert(flow.op("SetOp", function(ctx) ctx:set("object", object) end):run().ok)
end
