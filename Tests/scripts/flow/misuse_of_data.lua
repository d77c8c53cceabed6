-- :data, start and run accept only tables with string keys.
local flow, check = require "flow", require "check"
local blueprint = flow.new("misuse")
check.usage(function() blueprint:data() end, "'data'", "#1", "table")
check.usage(function() blueprint:data(42) end, "'data'", "#1", "table", "number")
check.usage(function() blueprint:data("text") end, "'data'", "#1", "table", "string")
check.usage(function() blueprint:data { "listed" } end, "'data'", "#1")
check.usage(function() blueprint:data { [true] = 1 } end, "'data'", "#1")
check.usage(function() blueprint:data { [1.5] = 1 } end, "'data'", "#1")
for _, method in ipairs { "start", "run" } do
  check.usage(function() blueprint[method](blueprint, 42) end, method, "#1", "table", "number")
  check.usage(function() blueprint[method](blueprint, "text") end, method, "#1", "table", "string")
  check.usage(function() blueprint[method](blueprint, { "listed" }) end, method, "#1")
end
local AnOp = flow.op("AnOp", function() end)
check.usage(function() AnOp:start(42) end, "start", "#1", "table", "number")
check.usage(function() AnOp:run { [{}] = 1 } end, "run", "#1")
