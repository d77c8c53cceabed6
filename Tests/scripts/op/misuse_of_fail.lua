-- ctx:fail accepts only an error or a message: a string, a number or a value with __tostring.
local flow, check = require "flow", require "check"
for _, wrong in ipairs { {}, true, print, coroutine.create(print) } do
  local e = flow.op("FailOp", function(ctx) ctx:fail(wrong) end):run().error
  check.equal(e.kind, "usage")
  check.contains(e, "misuse_of_fail.lua:4: ", "'fail'", "#1", "string", type(wrong))
end
check.equal(flow.op("FailOp", function(ctx) ctx:fail(42) end):run().error.message, "42")
local told = setmetatable({}, { __tostring = function() return "told" end })
check.equal(flow.op("FailOp", function(ctx) ctx:fail(told) end):run().error.message, "told")
