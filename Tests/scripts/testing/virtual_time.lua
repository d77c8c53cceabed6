-- A test has its own virtual clock: sleeps, retries and timeouts take no time.
-- clock: real: the clock of the tests differs from the script's
local flow, testing, check = require "flow", require "flow.testing", require "check"
local clock = os.clock
local began, real = os.time(), flow.now()
local DayOp = flow.op("DayOp", function(ctx)
  local from = flow.now()
  flow.sleep(86400)
  ctx:set("slept", flow.now() - from)
end)
local run = testing.run(DayOp)
assert(run.ok)
check.equal(run.duration, 86400.0)
check.equal(run.data.slept, 86400.0)
check.equal(run.state, "succeeded")
-- Each test's clock begins at 0.
local firsts = {}
for i = 1, 3 do
  testing.run(flow.op("NowOp", function() firsts[i] = flow.now(); flow.sleep(5) end))
end
check.same(firsts, { 0.0, 0.0, 0.0 })

local attempts = 0
local FlakyOp = flow.op("FlakyOp", {
  retry = { attempts = 4, delay = 10, factor = 2, jitter = 0.1 },
  run = function() attempts = attempts + 1; error("no", 0) end,
})
local first, second = testing.run(FlakyOp), testing.run(FlakyOp)
check.equal(attempts, 8)
assert(not first.ok and not second.ok)
-- Random numbers are the same each time.
check.equal(first.duration, second.duration)
assert(first.duration > 60 and first.duration < 80, first.duration)

local slow = testing.run(flow.op("SlowOp", { timeout = 30, run = function() flow.sleep(3600) end }))
check.equal(slow.error.kind, "timeout")
check.equal(slow.duration, 30.0)

assert(os.time() - began < 60 and flow.now() - real < 60)
assert(flow.now() > 100, "the script's own clock is the real one")
assert(clock() < 30)
