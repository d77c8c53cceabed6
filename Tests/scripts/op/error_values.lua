-- Any Lua value may be raised and is the cause, unchanged.
local flow, check = require "flow", require "check"
local table_value, thread = {}, coroutine.create(print)
for _, value in ipairs { 42, 4.5, true, false, table_value, print, thread, io.stdout } do
  local run = flow.op("FailOp", function() error(value) end):run()
  check.equal(run.ok, false)
  check.equal(run.error.kind, "error")
  assert(rawequal(run.error.cause, value) and math.type(run.error.cause) == math.type(value))
  if value == io.stdout then
    check.equal(run.error.message, tostring(value))  -- it has a __tostring
  else
    -- Nothing in the value tells where it was raised, so the message does.
    check.contains(run.error.message, "error_values.lua:5: ")
    check.contains(run.error.message, type(value) == "number" and tostring(value) or type(value))
  end
  check.contains(run:summary(), "[FailOp] DidFinish: withError: " .. run.error.message .. "\n")
end
