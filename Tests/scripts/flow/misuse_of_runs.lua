-- Methods of runs refuse wrong arguments.
local flow, check = require "flow", require "check"
local run = flow.new("misuse"):run()
check.usage(function() run:wait("long") end, "'wait'", "#1", "number", "string")
check.usage(function() run:wait({}) end, "'wait'", "#1", "number", "table")
check.usage(function() run:summary(42) end, "'summary'", "#1", "table", "number")
check.usage(function() run:summary { tiem = "iso" } end, "'summary'", "tiem")
check.usage(function() run.wait() end, "wait")
check.usage(function() run.summary({}) end, "summary")
