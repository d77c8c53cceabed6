-- A long sleep takes a virtual clock to its end, where all timers fire at once.
local flow, check = require "flow", require "check"
local testing = require "flow.testing"
local ItemOp = flow.op("ItemOp", { thread = "worker", needs = { n = "integer" }, gives = { m = "integer" },
  run = function(ctx)
    require("flow").sleep(0.002)
    ctx:set("m", ctx:get "n" * 2)
  end })
local late = flow.new("late"):data { ns = { 1, 2, 3, 4 } }
  :add(flow.op("LongOp", function() flow.sleep(1e10) flow.sleep(1e300) end))
  :add_grouped(ItemOp, { input = "ns", output = "ms" })
  :add(flow.op("RetryOp", { retry = { attempts = 4, delay = 1e300, factor = 1e300, jitter = 1 },
    timeout = 1e300, run = function(ctx) if ctx.attempt < 4 then error "again" end end }))
  :add(flow.op("StoppedOp", { timeout = 1, grace = 1e300, retry = 1, run = function(ctx)
    ctx:defer(function() flow.sleep(5) end)
    flow.sleep(10)
  end }))
  :did_finish(function() flow.sleep(3) end)
local run = testing.run(late)
check.same(run.data.ms, { 2, 4, 6, 8 })
check.equal(run.duration > 9e9, true)
check.equal(run.error.message, "timed out after 1s")
check.contains(run:summary { time = "iso", durations = true }, "[RetryOp] DidFinish: successfully")
check.equal(#run:events() > 10, true)
testing.run(flow.op("JoinOp", function()
  flow.with_delay(1e300):await()
  flow.when_all_finish { flow.with_delay(1), flow.with_delay(1e19) }:await()
  flow.resolved(1):wait(1e300)
end))
