-- A predicate that raises an error fails its flow with it.
local flow, check = require "flow", require "check"
local NeverOp = flow.op("NeverOp", function() error("it ran") end)
local raised = { code = 7 }
local function try(predicate)
  return flow.new("cases"):case(predicate):add(NeverOp):otherwise():add(NeverOp):run()
end

local run = try(function() error(raised) end)
check.equal(run.state, "failed")
check.equal(run.error.kind, "error")
check.equal(run.error.op, "Cases")
check.equal(run.error.cause, raised)

run = try(function() flow.sleep(0.001) error("after a wait") end)
check.contains(run.error.message, "failing_predicate.lua:", "after a wait")
check.contains(run.error.traceback, "failing_predicate.lua:")
check.contains(check.masked(run:summary()), "T [Cases] DidFinish: withError: ")

-- The data it gets is the data of the flow, and nothing else.
local seen
flow.new("data"):data { a = 1, b = { 2 } }:case(function(data) seen = data end):add(NeverOp):run()
check.same(seen, { a = 1, b = { 2 } })
