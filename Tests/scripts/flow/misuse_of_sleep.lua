-- flow.sleep accepts only a finite number of seconds.
local flow, check = require "flow", require "check"
check.usage(function() flow.sleep() end, "'sleep'", "#1", "number")
check.usage(function() flow.sleep(nil) end, "'sleep'", "#1", "number")
check.usage(function() flow.sleep("soon") end, "'sleep'", "#1", "number", "string")
check.usage(function() flow.sleep({}) end, "'sleep'", "#1", "number", "table")
