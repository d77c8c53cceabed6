-- A misuse that nobody catches ends the script like any error of lua5.4.
-- expect-status: 1
-- expect-stderr: Tests/scripts/flow/uncaught_usage.lua:6:
-- expect-stderr: 'add'
local flow = require "flow"
flow.new("misuse"):add(nil)
