-- Unknown and malformed fields are errors where they are written.
local flow, check = require "flow", require "check"
local function f() end
check.usage(function() flow.op("AOp", {}) end, "op", "run")
check.usage(function() flow.op("AOp", { run = 42 }) end, "op", "run", "function")
check.usage(function() flow.op("AOp", { run = f, ned = {} }) end, "op", "ned")
check.usage(function() flow.op("AOp", { run = f, Needs = {} }) end, "op", "Needs")
check.usage(function() flow.op("AOp", { f }) end, "op")
check.usage(function() flow.op("AOp", { run = f, [1] = "x" }) end, "op")
check.usage(function() flow.op("AOp", { run = f, [{}] = "x" }) end, "op")
check.usage(function() flow.op("AOp", { run = f, doc = 42 }) end, "op", "doc")
check.usage(function() flow.op("AOp", { run = f, doc = {} }) end, "op", "doc")
check.usage(function() flow.op("AOp", { run = f, needs = "string" }) end, "op", "needs")
check.usage(function() flow.op("AOp", { run = f, gives = 42 }) end, "op", "gives")
check.usage(function() flow.op("AOp", { run = f, primary_input = {} }) end, "op", "primary_input")
check.usage(function() flow.op("AOp", { run = f, primary_output = true }) end, "op", "primary_output")
