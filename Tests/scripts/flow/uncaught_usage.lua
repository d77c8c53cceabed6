-- An uncaught usage error ends the script as an error does in lua5.4.
-- expect-status: 1
-- expect-stderr: Tests/scripts/flow/uncaught_usage.lua:6:
-- expect-stderr: 'add'
local flow = require "flow"
flow.new("misuse"):add(nil)
