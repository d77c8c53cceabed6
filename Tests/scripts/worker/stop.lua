-- Timeouts and cancel stop a busy worker with their reason, and the worker survives.
-- clock: real: the virtual clock stands still while a worker is busy
local flow = require "flow"
local check = require "check"
local function worker(name, options)
  options.thread = "worker"
  return flow.op(name, options)
end
local function not_given_up(run) check.lacks(run:summary(), "given up") end
local LoopOp = worker("LoopOp", { timeout = 0.02, run = function() while true do pcall(error) end end })
local run = LoopOp:run()
check.equal(run.error.kind, "timeout")
check.equal(run.error.message, "timed out after 0.02s")
not_given_up(run)
assert(run:summary():find("[LoopOp] DidFinish: timedOut after 0.02s", 1, true))
-- A retry after it, then success; on a busy machine the others may be too slow as well.
local RetryOp = worker("RetryOp", {
  retry = 1000, timeout = 0.02, gives = { attempt = "integer" },
  run = function(ctx)
    if ctx.attempt < 3 then while true do end end -- luacheck: ignore
    ctx:set("attempt", ctx.attempt)
  end,
})
run = RetryOp:run()
assert(run.data.attempt >= 3)
assert(run:summary():find("[RetryOp] Retry 2/1000 in 0s: timed out after 0.02s", 1, true))
-- Cleanups run, and may wait.
local CleanOp = worker("CleanOp", {
  timeout = 0.2,
  run = function(ctx)
    ctx:defer(function() flow.sleep(0.001) ctx:log("cleaned") end)
    local _ <close> = setmetatable({}, { __close = function() ctx:log("closed") end })
    while true do end
  end,
})
run = CleanOp:run()
check.equal(run.error.kind, "timeout")
assert(run:summary():find("cleaned", 1, true), run:summary())
-- Cancel, busy and asleep.
for _, body in ipairs { function() while true do end end, function() flow.sleep(100) end } do
  local op = worker("CancelOp", { run = body })
  local started = op:start()
  flow.sleep(0.01)
  started:cancel("enough")
  started:wait()
  check.equal(started.state, "cancelled")
  assert(started:summary():find("[CancelOp] DidFinish: cancelled: enough", 1, true), started:summary())
  not_given_up(started)
end
-- The first failure of a group stops the others, busy ones too; nothing else begins.
local ns = {}
for i = 1, 100 do ns[i] = i end
local MixOp = worker("MixOp", {
  needs = { n = "integer" },
  run = function(ctx)
    if ctx:get("n") == 2 then flow.sleep(0.01) ctx:fail("second") end
    while true do end
  end,
})
run = flow.new("g"):data { ns = ns }:add_grouped(MixOp, { input = "ns", max_concurrent = 2 }):run()
check.equal(run.error.message, "second")
assert(run:summary():find("[MixOp #1] DidFinish: cancelled: group failed", 1, true), run:summary())
assert(not run:summary():find("MixOp #3", 1, true))
not_given_up(run)
-- A timeout of the flow around a group.
run = flow.new("g"):data { ns = ns }
  :add(flow.new("inner"):add_grouped(worker("SpinOp", { needs = { n = "integer" }, run = function() while true do end end }),
    { input = "ns", max_concurrent = 2 }), { timeout = 0.03 }):run()
check.equal(run.error.kind, "timeout")
-- The workers are as good as before.
local SumOp = worker("SumOp", {
  needs = { n = "integer" }, gives = { m = "integer" },
  run = function(ctx) ctx:set("m", ctx:get("n") * 2) end,
})
run = flow.new("g"):data { ns = ns }:add_grouped(SumOp, { input = "ns", output = "out" }):run()
check.equal(run.data.out[100], 200)
