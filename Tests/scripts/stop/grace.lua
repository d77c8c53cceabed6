-- A cleanup running at the stop has its grace from its own beginning and is cut then.
-- The remaining cleanups are called all the same, up to their first wait.
-- expect-status: 1
-- expect-stderr: the cleanup of [TidyOp] at Tests/scripts/stop/grace.lua:37 was cut after a grace of 5s,
-- expect-stderr: [CloseOp], a final step of [f], was cut after a grace of 6s, while it waited in await at
-- expect-stderr: f failed: the did_finish of [f] at Tests/scripts/stop/grace.lua:
-- expect-stderr: , while it waited in flow.sleep at Tests/scripts/stop/grace.lua:
-- expect-stderr: inner failed: the cleanup of [inner] at
local flow, check = require "flow", require "check"
local testing = require "flow.testing"
local long = 1000
local function lasts(actual, seconds) check.equal(actual, seconds + 0.0) end
local function pause() flow.sleep(long) end
local function reason(ctx) return ctx.error and ctx.error.message or "nil" end
-- After success and failure there is no limit.
local calm = {}
local CalmOp = flow.op("CalmOp", { grace = 1, run = function(ctx, fails)
  ctx:defer(function() pause() calm[#calm + 1] = reason(ctx) end)
  if fails then error("bad", 0) end
end })
lasts(testing.run(CalmOp).duration, long)
lasts(testing.run(CalmOp(true)).duration, long)
check.same(calm, { "nil", "bad" })
local PauseOp = flow.op("PauseOp", pause)
local FailOp = flow.op("FailOp", function() error("bad", 0) end)
local function ending(op)
  return flow.new("f"):add(op):add_finally(PauseOp):did_finish(pause):with { grace = 1 }
end
lasts(testing.run(ending(flow.ops.PrintOp "x")).duration, long)
lasts(testing.run(ending(FailOp)).duration, long)

-- After a stop all cleanups of an op share its grace; those that come later are called all the same.
local calls
local function record(name) calls[#calls + 1] = name end
local TidyOp = flow.op("TidyOp", { timeout = 1, grace = 5, run = function(ctx)
  ctx:defer(function() record("last " .. reason(ctx)) end)
  ctx:defer(function()
    record "cut"
    flow.sleep(60)
    record "never"
  end)
  ctx:defer(function() flow.sleep(2) record "first" end)
  pause()
end })
calls = {}
local run = testing.run(TidyOp)
lasts(run.duration, 6)
check.equal(run.error.kind, "timeout")
check.same(calls, { "first", "cut", "last timed out after 1s" })

-- So do the final steps of a flow, and what it calls after its end.
local function closing()
  calls = {}
  local CloseOp = flow.op("CloseOp", function(ctx)
    record("close " .. reason(ctx))
    flow.sleep(2)
    flow.context().task:await()
  end)
  local LastOp = flow.op("LastOp", function(ctx) record("last " .. reason(ctx)) end)
  local f = flow.new("f"):add(PauseOp):add_finally(CloseOp):add_finally(LastOp)
    :did_finish(function(done) record("did " .. tostring(done.error)) end):with { grace = 6 }
  return testing.run(flow.op("CancelOp", function()
    local run = f:start()
    flow.sleep(3)
    run:cancel "enough"
    -- One that is asked again has no more time.
    flow.sleep(1)
    run:cancel "once more"
    run:wait()
    check.equal(run.error.message, "cancelled: enough")
  end))
end
lasts(closing().duration, 9)
check.same(calls, { "close cancelled: enough", "last cancelled: enough", "did cancelled: enough" })

-- One that succeeded has its grace from the stop on.
local Stopper = flow.op("StopperOp", function()
  local started = {
    flow.op("inner", { grace = 4, run = function(ctx) ctx:defer(pause) end }):start(),
    flow.new("f"):add_finally(PauseOp):with { grace = 4 }:start(),
    flow.new("f"):did_finish(pause):with { grace = 4 }:start(),
  }
  flow.sleep(100)
  for _, each in ipairs(started) do each:cancel() end
  for _, each in ipairs(started) do each:wait() end
end)
lasts(testing.run(Stopper).duration, 104)

-- The time of an op around it, of a group, and math.huge.
lasts(testing.run(flow.op("OuterOp", { timeout = 10, run = function()
  flow.new("f"):did_finish(pause):with { grace = 4 }:run()
end })).duration, 14)
local InnerOp = flow.op("InnerOp", function(ctx) ctx:defer(function() flow.sleep(20) end) pause() end)
lasts(testing.run(flow.new("p"):add_parallel(InnerOp, FailOp)).duration, 20)
lasts(testing.run(flow.op("EndlessOp", { grace = math.huge, timeout = 1, run = function(ctx)
  ctx:defer(pause)
  pause()
end })).duration, 1001)

-- At a place, by default 30 s, and each attempt has its own.
local StuckOp = flow.op("StuckOp", function(ctx) ctx:defer(pause) pause() end)
lasts(testing.run(flow.new("f"):add(StuckOp, { timeout = 1, grace = 2 })).duration, 3)
lasts(testing.run(StuckOp:with { timeout = 1 }).duration, 31)
lasts(testing.run(StuckOp:with { timeout = 1, grace = 3, retry = 2 }).duration, 8)

-- ctx.error is nil where nothing ends.
local seen = {}
testing.run(flow.new("f"):add(flow.op("AOp", function(ctx) seen[#seen + 1] = reason(ctx) end))
  :add_finally(flow.new("inner"):add(flow.op("BOp", function(ctx) seen[#seen + 1] = reason(ctx) end)))
  :add(FailOp))
check.same(seen, { "nil", "bad" })
