-- A group's rate limits how many items start in any period of time, further attempts included.
local flow, check = require "flow", require "check"

-- Runs a group over n items; returns the run, and the times of all attempts.
local function starts(n, options, op_options)
  local times, began, items = {}, flow.now(), {}
  local op = flow.op("StartOp", {
    needs = { n = "integer" }, retry = op_options and op_options.retry,
    run = function(ctx)
      times[#times + 1] = flow.now() - began
      if op_options and op_options.run then op_options.run(ctx) end
    end,
  })
  for i = 1, n do items[i] = i end
  options.input = "items"
  local run = flow.new("group"):add_grouped(op, options):run { items = items }
  assert(run.ok, run.error)
  return times, run
end

-- n per second, or n per period: together at first, then when the period allows it.
check.same(starts(5, { rate = 2, max_concurrent = 9 }), { 0.0, 0.0, 1.0, 1.0, 2.0 })
check.same(starts(5, { rate = { 2 }, max_concurrent = 9 }), { 0.0, 0.0, 1.0, 1.0, 2.0 })
check.same(starts(5, { rate = { 3, per = 60 }, max_concurrent = 9 }), { 0.0, 0.0, 0.0, 60.0, 60.0 })
check.same(starts(4, { rate = { 1, per = 0.25 }, max_concurrent = 9 }), { 0.0, 0.25, 0.5, 0.75 })
check.same(starts(3, { rate = 100 }), { 0.0, 0.0, 0.0 })
local _, run = starts(0, { rate = 1, allow_empty = true })
check.equal(run.duration, 0.0)
-- The period slides: it counts from each start, whenever that was.
check.same(starts(6, { rate = { 2, per = 10 }, max_concurrent = 1 },
  { run = function() flow.sleep(4) end }), { 0.0, 4.0, 10.0, 14.0, 20.0, 24.0 })
-- max_concurrent holds too.
check.same(starts(4, { rate = { 3, per = 1 }, max_concurrent = 1 },
  { run = function() flow.sleep(2) end }), { 0.0, 2.0, 4.0, 6.0 })

-- Further attempts count, come before new items, and aren't earlier than their delay.
local function fails_once(ctx) if ctx.attempt == 1 and ctx:get "n" <= 2 then error("again", 0) end end
for _, hold in ipairs { false, true } do
  check.same(starts(3, { rate = 1, max_concurrent = 2, hold_slot = hold },
    { retry = 2, run = fails_once }), { 0.0, 1.0, 2.0, 3.0, 4.0 })
end
local order = {}
starts(4, { rate = 1, max_concurrent = 2 }, {
  retry = { attempts = 2, delay = 1.5 }, run = function(ctx)
    order[#order + 1] = ctx:get "n" .. "." .. ctx.attempt
    fails_once(ctx)
  end,
})
check.equal(table.concat(order, " "), "1.1 2.1 1.2 2.2 3.1 4.1")

-- No period has more starts, whatever items do.
local times = starts(300, { rate = { 7, per = 3 }, max_concurrent = 20 }, {
  retry = { attempts = 9, delay = 0.9, jitter = 1 }, run = function(ctx)
    flow.sleep((ctx:get "n" * 13 % 40) / 10)
    if ctx.attempt <= ctx:get "n" % 3 then error("again", 0) end
  end,
})
check.equal(#times, 600)
for i = 8, #times do assert(times[i] - times[i - 7] >= 3 - 1e-9, i) end

-- Cancelled and timed out while items wait for their time.
local StartOp = flow.op("StartOp", { needs = { n = "integer" }, run = function() end })
local function slow() return flow.new("slow"):data { items = { 1, 2, 3 } }
  :add_grouped(StartOp, { input = "items", rate = { 1, per = 100 } }) end
run = slow():start()
check.equal(run:wait(5), false)
run:cancel()
run:wait()
check.equal(run.state, "cancelled")
check.equal(run.duration, 5.0)
run = require "flow.testing".run(slow():with { timeout = 120 })
check.equal(run.error.kind, "timeout")
check.equal(run.duration, 120.0)

-- In workers, and with attempts there.
local function worker_starts(n, options, retry)
  local items = {}
  for i = 1, n do items[i] = i end
  options.input = "items"
  local op = flow.op("WorkerOp", {
    needs = { n = "integer" }, thread = "worker", retry = retry,
    run = function(ctx) if retry and ctx.attempt == 1 then error("again", 0) end end,
  })
  run = flow.new("group"):add_grouped(op, options):run { items = items }
  assert(run.ok, run.error)
  return run
end
check.equal(worker_starts(5, { rate = { 2, per = 100 }, max_concurrent = 8 }).duration, 200.0)
check.equal(worker_starts(400, { rate = { 100, per = 100 }, max_concurrent = 8 }).duration, 300.0)
check.equal(worker_starts(3, { rate = { 1, per = 100 } }, 2).duration, 500.0)

-- The text of a dispatcher, and wrong values.
local group = flow.dispatcher { input = "items", rate = { 3, per = 60 }, hold_slot = true }
check.same(group.rate, { 3, per = 60.0 })
check.equal(group.hold_slot, true)
group = flow.dispatcher { input = "items" }
check.equal(group.rate, nil)
check.equal(group.hold_slot, false)
check.same(flow.dispatcher { input = "items", rate = 5 }.rate, { 5, per = 1.0 })
local function with(rate, ...)
  check.usage(function() flow.dispatcher { input = "items", rate = rate } end, "'dispatcher'",
    "field 'rate", ...)
end
for _, rate in ipairs { 0, -1, 1.5, 0 / 0, math.huge } do with(rate, "integer of at least 1") end
for _, rate in ipairs { "5", true, print } do with(rate, "{ n, per = seconds }", "got " .. type(rate)) end
with({}, "without a number at index 1")
with({ per = 1 }, "without a number at index 1")
with({ "x" }, "'rate.1': integer of at least 1 expected, got string")
with({ 0 }, "'rate.1'")
for _, per in ipairs { 0, -1, 0 / 0, math.huge, "1" } do with({ 1, per = per }, "'rate.per'") end
check.usage(function() flow.dispatcher { input = "items", rate = { 1, 2 } } end, "'dispatcher'",
  "fields are named by strings")
with({ 1, pre = 2 }, "unknown field 'rate.pre' (did you mean 'per'?)")
check.usage(function() flow.dispatcher { input = "items", hold_slot = 1 } end, "'dispatcher'",
  "hold_slot", "boolean")

-- Drawings and plans show it.
local it = flow.new("shown"):add_grouped(StartOp, { input = "items", rate = { 3, per = 60 } })
check.contains(it:dot(), "rate = 3 per 60s")
check.contains(it:mermaid(), "rate = 3 per 60s")
