-- `flow.within` and `await { timeout = … }` stop ops that their code executes within an op, and wait for the cleanups.
local flow, check = require "flow", require "check"

local log = {}
local function add(what) log[#log + 1] = what end
local PayOp = flow.op("PayOp", function(ctx)
  ctx:defer(function()
    add "cleanup"
    flow.sleep(1)
    add "clean"
  end)
  flow.sleep(10)
  add "paid"
end)

-- Each way executes the op, and has it stopped after 2 seconds.
local function inside(way)
  log = {}
  local began, ok, took
  local run = flow.op("OuterOp", function(ctx)
    began = flow.now()
    ok = way(ctx)
    took = flow.now() - began
    flow.sleep(100)
  end):run()
  return { run.ok, ok, took, table.concat(log, " ") }
end
local stopped = { true, false, 3.0, "cleanup clean" }
local ways = {
  execute = function(ctx) return (pcall(flow.within, 2, function() ctx:execute(PayOp) end)) end,
  flow = function(ctx) return (pcall(flow.within, 2, function() ctx:execute(flow.new("pays"):add(PayOp)) end)) end,
  caught = function(ctx) return (pcall(flow.within, 2, function() pcall(ctx.execute, ctx, PayOp) end)) end,
  within_within = function(ctx)
    return (pcall(flow.within, 2, function() flow.within(50, function() ctx:execute(PayOp) end) end))
  end,
  limit = function(ctx)
    return (pcall(flow.within, 2, function() flow.limit("pay", 1):use(function() ctx:execute(PayOp) end) end))
  end,
  await = function(ctx)
    local task = flow.spawn(function() ctx:execute(PayOp) end)
    return (pcall(task.await, task, { timeout = 2 }))
  end,
  cancel = function(ctx)
    local task = flow.spawn(function() ctx:execute(PayOp) end)
    flow.sleep(2)
    task:cancel()
    return (pcall(task.await, task))
  end,
  first = function(ctx)
    local first = flow.when_any_succeeds({ flow.spawn(function() ctx:execute(PayOp) end), flow.with_delay(2) },
      { cancel = true })
    first:await()
    flow.sleep(1)
    return false
  end,
}
for name, way in pairs(ways) do
  local found = inside(way)
  check.same({ name, table.unpack(found) }, { name, table.unpack(stopped) })
end

-- The cleanups begin at once, also while variables of the stopped code are closed.
check.same(inside(function(ctx)
  local ok = pcall(flow.within, 2, function()
    local closing <close> = setmetatable({}, { __close = function()
      flow.sleep(5)
      add "closed"
    end })
    ctx:execute(PayOp)
  end)
  return ok
end), { true, false, 7.0, "cleanup clean closed" })

-- The error of the op and of the code.
local late
local run = flow.op("OuterOp", function(ctx)
  late = check.raises(function() flow.within(2, function() ctx:execute(PayOp) end) end, "timed out after 2s")
end):run()
check.equal(late.kind, "timeout")
check.contains(run:summary(), "[PayOp] DidFinish: cancelled: timed out after 2s")

-- In time nothing changes, and an op that has ended in time stays executed.
log = {}
run = flow.op("OuterOp", function(ctx)
  flow.within(20, function() ctx:execute(PayOp) end)
  pcall(flow.within, 20, function()
    ctx:execute(PayOp)
    flow.sleep(60)
  end)
end):run()
check.equal(run.ok, true)
check.equal(table.concat(log, " "), "paid cleanup clean paid cleanup clean")

-- Items of a group that the code executes end with it.
local items = 0
local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, run = function()
  flow.sleep(3)
  items = items + 1
end })
local group = flow.new("items"):add_grouped(ItemOp, { input = "ns", max_concurrent = 1 })
run = flow.op("OuterOp", function(ctx)
  check.raises(function() flow.within(5, function() ctx:execute(group, { ns = { 1, 2, 3, 4, 5 } }) end) end)
  flow.sleep(100)
end):run()
check.equal(run.ok, true)
check.equal(items, 1)

-- A wrapper that tries again has one attempt at a time, and each is over.
local effects, attempts = 0, 0
local EffectOp = flow.op("EffectOp", function()
  attempts = attempts + 1
  flow.sleep(10)
  effects = effects + 1
end)
local TriedOp = flow.wrap(EffectOp, function(ctx, try)
  for _ = 1, 3 do
    if pcall(flow.within, 5, try) then return end
  end
  flow.sleep(30)
  ctx:fail "timed out 3 times"
end)
check.contains(TriedOp:run().error, "timed out 3 times")
check.same({ attempts, effects }, { 3, 0 })
-- The timeout of the op itself stops everything.
check.contains(TriedOp:with({ timeout = 7 }):run().error, "timed out after 7s")
check.equal(effects, 0)
