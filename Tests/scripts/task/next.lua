-- Each continuation runs for its outcomes, receives their value and decides how its task ends.
local flow, check = require "flow", require "check"

local bad = flow.failed("bad")
local gone = flow.cancelled("gone")

-- next runs in any case and gets the task.
for _, source in ipairs { flow.resolved(7), bad, gone } do
  local seen
  local task = source:next(function(t) seen = t return t.state end)
  check.equal(seen, source)
  check.equal(task:await(), source.state)
end

-- A value is wrapped, a task is followed, an error fails; further return values are dropped.
check.equal(flow.resolved(1):next(function() return 2, 3 end):await(), 2)
check.equal(select("#", flow.resolved(1):next(function() return 2, 3 end):await()), 1)
check.equal(flow.resolved(1):next(function() end):await(), nil)
check.equal(flow.resolved(1):next(function() return flow.with_delay(0.001, "later") end):await(), "later")
local failed = flow.resolved(1):next(function() return bad end)
check.equal(failed.state, "failed")
check.equal(failed.error, bad.error)
check.equal(flow.resolved(1):next(function() return gone end).state, "cancelled")
local raised = flow.resolved(1):next(function() error({ mine = true }) end)
check.equal(raised.error.cause.mine, true)

-- next_on_success gets the result; what isn't one passes through, the same error.
check.equal(flow.resolved(2):next_on_success(function(v) return v * 3 end):await(), 6)
local function never() error("never called") end
check.equal(bad:next_on_success(never).error, bad.error)
check.equal(gone:next_on_success(never).state, "cancelled")
check.equal(tostring(gone:next_on_success(never).error), "cancelled: gone")

-- next_on_error gets the error of a failure only.
check.equal(bad:next_on_error(function(e) return e.cause end):await(), "bad")
check.equal(flow.resolved(2):next_on_error(never):await(), 2)
check.equal(gone:next_on_error(never).state, "cancelled")

-- finally keeps the outcome once its function is done, or fails.
local log = {}
local last = bad:finally(function(t)
  flow.sleep(0.001)
  log[#log + 1] = t.state
  return "dropped"
end)
check.equal(last.state, "pending")
check.equal(last:wait(), true)
check.equal(last.error, bad.error)
check.same(log, { "failed" })
check.equal(flow.resolved(3):finally(function() return flow.with_delay(0.001) end):await(), 3)
check.equal(flow.resolved(3):finally(function() error("in finally", 0) end).error.message, "in finally")
check.equal(flow.resolved(3):finally(function() return flow.failed("x") end).state, "failed")
check.equal(gone:finally(function(t) log[2] = t.state end).state, "cancelled")
check.equal(log[2], "cancelled")
check.equal(flow.resolved(4):finally_on_success(function(v) log[3] = v end):await(), 4)
check.equal(log[3], 4)
check.equal(bad:finally_on_success(never).error, bad.error)
check.equal(gone:finally_on_success(never).state, "cancelled")
for _, t in ipairs { failed, raised } do t:wait() end

-- Runs and programs are tasks: their results reach continuations.
local SetOp = flow.op("SetOp", function(ctx) ctx:set("x", 5) end)
check.equal(SetOp:start():next_on_success(function(data) return data.x end):await(), 5)
check.equal(flow.resolved():next(function() return SetOp:start() end):await().x, 5)
check.equal(flow.exec({ "true" }):next_on_success(function(r) return r.status end):await(), 0)
local FailOp = flow.op("FailOp", function(ctx) ctx:fail("no", { code = 4 }) end)
check.equal(FailOp:start():next_on_error(function(e) return e.code .. e.op end):await(), "4FailOp")
check.equal(flow.op("ReturnOp", function() return flow.with_delay(0.001) end):run().ok, true)
