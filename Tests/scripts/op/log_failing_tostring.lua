-- A value whose __tostring raises an error fails the op that logs it.
local flow, check = require "flow", require "check"
local bad = setmetatable({}, { __tostring = function() error("no text", 0) end })
local run = flow.op("LogOp", function(ctx) ctx:log(bad) end):run()
check.equal(run.ok, false)
check.contains(run.error.message, "no text")
run = flow.op("LogOp", function(ctx) pcall(ctx.log, ctx, bad) ctx:log("went on") end):run()
check.equal(run.ok, true)
check.contains(run:summary(), "[LogOp] went on")
