-- flow.op names the wrong argument.
local flow, check = require "flow", require "check"
local function f() end
check.usage(function() flow.op() end, "op", "#1", "string")
check.usage(function() flow.op(nil, f) end, "op", "#1", "string")
check.usage(function() flow.op({}, f) end, "op", "#1", "string", "table")
check.usage(function() flow.op("", f) end, "op", "#1")
check.usage(function() flow.op("AOp") end, "op", "#2")
check.usage(function() flow.op("AOp", nil) end, "op", "#2", "nil")
check.usage(function() flow.op("AOp", 42) end, "op", "#2", "number")
check.usage(function() flow.op("AOp", "text") end, "op", "#2", "string")
check.usage(function() flow.op("AOp", coroutine.create(f)) end, "op", "#2", "thread")
