-- Cleanups run last-in first-out at the end of each attempt, whatever the outcome, and may wait.
local flow, check = require "flow", require "check"
local calls
local function tidy(name, policy, body)
  policy.run = function(ctx)
    ctx:defer(function() calls[#calls + 1] = "first " .. ctx.attempt end)
    ctx:defer(function()
      flow.sleep(0.001)
      ctx:log("tidies")
      ctx:set("tidied", true)
      calls[#calls + 1] = "second " .. ctx.attempt
    end)
    body(ctx)
  end
  calls = {}
  return flow.op(name, policy):run()
end
local both = { "second 1", "first 1" }

local run = tidy("FineOp", {}, function() end)
check.same(calls, both)
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
T [FineOp] WillStart
T [FineOp] tidies
T [DataBucket] add for tidied: true
T [FineOp] DidFinish: successfully
T [DataBucket] end with:
tidied: true
Flow isSuccess: true
======    Ending    ======
]])

run = tidy("BadOp", {}, function() error("bad") end)
check.same(calls, both)
check.contains(run.error.message, "bad")
run = tidy("FailOp", {}, function(ctx) ctx:fail("failed") end)
check.same(calls, both)
check.equal(run.error.message, "failed")
run = tidy("SlowOp", { timeout = 5 }, function() flow.sleep(10) end)
check.same(calls, both)
check.equal(run.error.kind, "timeout")
run = tidy("BusyOp", { timeout = 0.2 }, function() while true do pcall(load, "") end end)
check.same(calls, both)
check.equal(run.error.kind, "timeout")
run = tidy("MissingOp", { gives = { x = "any" } }, function() end)
check.same(calls, both)
check.equal(run.error.kind, "missing_output")
run = tidy("StuckOp", {}, function(ctx) ctx.run:wait() end)
check.same(calls, both)
check.equal(run.error.kind, "stalled")
run = tidy("AgainOp", { retry = 2 }, function(ctx) if ctx.attempt == 1 then error("bad") end end)
check.same(calls, { "second 1", "first 1", "second 2", "first 2" })
check.equal(run.ok, true)

-- One that raises doesn't stop the others, and fails an op that had succeeded.
calls = {}
local raised = {}
local op = flow.op("UntidyOp", function(ctx)
  ctx:defer(function() calls[#calls + 1] = "still" end)
  ctx:defer(function() error(raised) end)
end)
run = op:run()
check.same(calls, { "still" })
check.equal(run.error.cause, raised)
check.equal(run.error.op, "UntidyOp")
check.contains(check.masked(run:summary()), "T [UntidyOp] DidFinish: withError: ")
run = flow.op("FailInDeferOp", function(ctx)
  ctx:defer(function() ctx:fail("untidy", { code = 5 }) end)
end):run()
check.equal(run.error.message, "untidy")
check.equal(run.error.code, 5)
run = flow.op("GetInDeferOp", function(ctx) ctx:defer(function() ctx:get("absent") end) end):run()
check.equal(run.error.kind, "insufficient_input")

-- Afterwards ctx is closed, and nothing can be deferred any more.
local kept
flow.op("KeepOp", function(ctx) kept = ctx ctx:defer(function() end) end):run()
check.raises(function() kept:defer(print) end, "has finished")
flow.op("MisuseOp", function(ctx)
  check.usage(function() ctx:defer() end, "'defer'", "#1", "function")
  check.usage(function() ctx:defer("x") end, "'defer'", "#1", "function", "string")
end):run()
