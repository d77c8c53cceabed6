-- flow.new accepts only a name that isn't empty.
local flow, check = require "flow", require "check"
check.usage(function() flow.new({}) end, "new", "#1", "string", "table")
check.usage(function() flow.new(true) end, "new", "#1", "string", "boolean")
check.usage(function() flow.new(print) end, "new", "#1", "string", "function")
check.usage(function() flow.new("") end, "new", "#1")
