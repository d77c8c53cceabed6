-- Final steps run whatever happened, and a failing one fails a flow that had succeeded.
local flow, check = require "flow", require "check"
local CloseOp = flow.op("CloseOp", function(ctx)
  flow.sleep(0.001)
  ctx:log("closes " .. ctx:get("handle"))
end)
local function closing(op, policy)
  return flow.new("f"):data { handle = "h" }:add_finally(CloseOp)
    :add(flow.new("inner"):add(op), policy)
end

local run = closing(flow.op("FineOp", function() end)):run()
check.equal(run.ok, true)
check.contains(run:summary(), "[CloseOp] closes h")

run = closing(flow.op("BadOp", function(ctx) ctx:fail("bad") end)):run()
check.equal(run.error.message, "bad")
check.contains(run:summary(), "[CloseOp] closes h")

run = closing(flow.op("SlowOp", function() flow.sleep(10) end), { timeout = 5 }):run()
check.equal(run.error.kind, "timeout")
check.equal(run.error.op, "inner")
check.equal(run.error.message, "timed out after 5s")
check.contains(check.masked(run:summary()), [[
T [SlowOp] DidFinish: cancelled: timed out after 5s
T [inner] DidFinish: timedOut after 5s
T [CloseOp] WillStart
T [CloseOp] closes h
T [CloseOp] DidFinish: successfully
]])

local raised = {}
local BadCloseOp = flow.op("BadCloseOp", function() error(raised) end)
run = closing(flow.op("FineOp", function() end)):add_finally(BadCloseOp):add_finally(CloseOp):run()
check.equal(run.ok, false)
check.equal(run.error.op, "BadCloseOp")
check.equal(run.error.cause, raised)
local _, closed = run:summary():gsub("closes h", "")
check.equal(closed, 2)

-- Policies hold for final steps too.
local attempts = {}
local FlakyOp = flow.op("FlakyOp", function(ctx)
  attempts[#attempts + 1] = ctx.attempt
  if ctx.attempt < 3 then error("not yet") end
end)
assert(flow.new("f"):add_finally(FlakyOp, { retry = { attempts = 3, delay = 0.001 } }):run().ok)
check.same(attempts, { 1, 2, 3 })
