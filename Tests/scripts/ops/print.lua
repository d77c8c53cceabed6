-- PrintOp logs its message byte for byte; a summary escapes control characters.
local flow, check = require "flow", require "check"
local PrintOp = flow.ops.PrintOp
local run = flow.new("printing"):add(PrintOp("hello")):add(PrintOp(12)):add(PrintOp "a\0\xff"):run()
check.contains(run:summary(), "[PrintOp] hello\n", "[PrintOp] 12\n", "[PrintOp] a\\x00\xff\n")
check.equal(run:events()[8].message, "a\0\xff")
check.usage(function() PrintOp() end, "PrintOp", "#1", "string expected", "no value")
check.usage(function() PrintOp {} end, "PrintOp", "#1", "string expected", "table")
check.usage(function() flow.new("f"):add(PrintOp) end, "add", "#1", "PrintOp", "arguments")
check.usage(function() PrintOp:start() end, "PrintOp", "arguments")
