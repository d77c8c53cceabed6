-- `ctx:wait_for` waits for a message to its run, in order and once each; `flow.send` sends it, and bad use of both is named.
local flow, testing, check = require "flow", require "flow.testing", require "check"

local seen = {}
local AskOp = flow.op("AskOp", function(ctx)
  seen[1] = ctx:wait_for "a"
  seen[2] = ctx:wait_for("b", { type = "integer" })
  seen[3] = ctx:wait_for "a"
end)
local run = AskOp:start()
flow.send(run, "b", 7)
check.same(seen, {})
flow.send(run, "a", { x = 1 })
flow.send(run, "a", "second")
run:await()
check.same(seen, { { x = 1 }, 7, "second" })
check.usage(function() flow.send(run, "a", 1) end, "send", "has ended")

-- A value of another type is dropped, with a line in the log.
run = flow.op("TypeOp", function(ctx) ctx:set("n", ctx:wait_for("n", { type = "integer" })) end):start()
flow.send(run, "n", "no")
flow.send(run, "n", 3)
run:await()
check.equal(run.data.n, 3)
check.contains(run:summary(), "[TypeOp] Dropped message <n>: integer expected, got no")

-- Each waiting op has a message of its own, the oldest wait first.
local order = {}
local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, run = function(ctx)
  local word = ctx:wait_for "go"
  order[#order + 1] = ctx:get "item" .. word
end })
run = flow.new("items"):data { items = { 1, 2, 3 } }:add_grouped(ItemOp, { input = "items" }):start()
for _, word in ipairs { "x", "y", "z" } do flow.send(run, "go", word) end
run:await()
table.sort(order)
check.same(order, { "1x", "2y", "3z" })

-- An attempt that is repeated has the message of the one before.
local attempts = {}
run = flow.op("RetryOp", { retry = 2, run = function(ctx)
  attempts[ctx.attempt] = ctx:wait_for "once"
  if ctx.attempt == 1 then error "again" end
end }):start()
flow.send(run, "once", "m")
run:await()
check.same(attempts, { "m", "m" })

-- Ops of runs that an op has started take messages to the outer run.
local inner
run = flow.op("OuterOp", function()
  flow.op("InnerOp", function(ctx) inner = ctx:wait_for "deep" end):run()
end):start()
flow.send(run, "deep", 1)
run:await()
check.equal(inner, 1)

-- A wait ends with its time, its op, and when nothing can come.
run = flow.op("WithinOp", function(ctx) flow.within(5, function() ctx:wait_for "x" end) end):run()
check.equal(run.error.kind .. run.duration, "timeout5.0")
run = flow.op("LimitOp", function(ctx) ctx:wait_for("x", { timeout = 3 }) end):run()
check.equal(run.error.kind .. run.duration, "timeout3.0")
run = flow.op("StalledOp", function(ctx) ctx:wait_for "x" end):run()
check.equal(run.error.kind, "stalled")
run = flow.op("StoppedOp", function(ctx) ctx:wait_for "x" end):start()
run:cancel "enough"
run:wait()
check.equal(run.error.kind, "cancelled")

-- Timeouts of the op, and of flows around it, don't count meanwhile; what was left counts afterwards.
local function late(seconds, timeouts)
  local op = flow.op("LateOp", { timeout = timeouts.op, run = function(ctx)
    flow.sleep(3)
    flow.spawn(function() ctx:wait_for "b" end)
    ctx:wait_for "a"
    flow.sleep(seconds)
  end })
  local inner = flow.new("inner"):data { list = { 1, 2 } }:add_grouped(op, { input = "list", as = "item" }):with { timeout = timeouts.flow }
  local outer = flow.op("OuterOp", { timeout = timeouts.outer, run = function() inner:run():await() end })
  local started = outer:start()
  flow.spawn(function()
    for _, name in ipairs { "a", "b", "b", "a" } do
      flow.sleep(100)
      flow.send(started, name, 1)
    end
  end)
  started:wait()
  return started.ok and "ok" or started.error.kind, started.duration
end
for _, level in ipairs { "op", "flow", "outer" } do
  local outcome, duration = late(4, { [level] = 8 })
  check.equal(outcome .. duration, "ok404.0", level)
  outcome, duration = late(6, { [level] = 8 })
  check.equal(outcome .. duration, "timeout405.0", level)
end
run = flow.op("LateOp", { timeout = 5, run = function(ctx) ctx:wait_for "x" end }):run()
check.equal(run.error.kind, "stalled")

-- A cleanup that waits isn't cut either: its time follows from the timeouts around it, also those around its run.
local said
local CleanOp = flow.op("CleanOp", { grace = 0.3, run = function(ctx)
  ctx:defer(function()
    said[1] = ctx:wait_for "x"
    flow.sleep(0.01)
    said[2] = "cleaned"
  end)
end })
local started
for _, outer in ipairs { CleanOp, flow.op("StartOp", function() started = CleanOp:start() started:wait() end) } do
  said, started = {}, nil
  local waiting = flow.new("f"):add(outer):with { timeout = 0.3 }:start()
  flow.sleep(1.5)
  flow.send(started or waiting, "x", 1)
  waiting:wait()
  check.same({ waiting.state, said }, { "succeeded", { 1, "cleaned" } }, tostring(waiting.error))
end

-- In tests.
run = testing.run(flow.op("TestOp", function(ctx)
  flow.send(ctx.run, "x", 5)
  ctx:set("x", ctx:wait_for "x")
end))
check.equal(run.data.x, 5)

-- Bad use.
local function bad(words, ...)
  local result = flow.op("BadOp", words):run()
  check.equal(result.error.kind, "usage", tostring(result.error))
  check.contains(result.error.message, "messages.lua:", ...)
end
bad(function(ctx) ctx:wait_for() end, "bad argument #1 to 'wait_for' (string expected, got")
bad(function(ctx) ctx:wait_for "" end, "a name is a non-empty string")
bad(function(ctx) ctx:wait_for("x", { type = "boo lean" }) end, "field 'type'")
bad(function(ctx) ctx:wait_for("x", { type = 5 }) end, "field 'type': type (string or function) expected")
bad(function(ctx) ctx:wait_for("x", { timeout = -1 }) end, "field 'timeout'")
bad(function(ctx) ctx:wait_for("x", { question = "?" }) end, "unknown field 'question'")
bad(function(ctx) ctx:wait_for("x", { ask = 5 }) end, "field 'ask': string expected")
check.usage(function() flow.send(5, "x", 1) end, "send", "#1", "run or the id of a kept run expected")
check.usage(function() flow.send("r7k2", "x", 1) end, "send", "there is no")
run = flow.op("WaitOp", function(ctx) ctx:wait_for "x" end):start()
check.usage(function() flow.send(run, "x") end, "send", "#3", "value expected")
check.usage(function() flow.send(run, "", 1) end, "send", "#2")
run:cancel()
local worker = flow.op("WorkerOp", { thread = "worker", run = function(ctx) ctx:wait_for "x" end }):run()
check.contains(worker.error.message, "an op in a worker can't wait for messages")
