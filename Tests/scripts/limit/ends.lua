-- Whatever ends an op gives its limits back; a waiter that is stopped leaves no trace; what waits for itself is stalled.
local flow, check = require "flow", require "check"
local db = flow.limit("db", 1)
local function op(name, run, options)
  options = options or {}
  options.limit, options.run = options.limit or db, run
  return flow.op(name, options)
end
local Slow = op("SlowOp", function() flow.sleep(10) end)

-- A waiter that is cancelled, alone and in flows, groups and graphs.
local holder = Slow:start()
local waiters = {
  op("WaitOp", function() error "begun" end):start(),
  flow.new("f"):add(op("WaitOp", function() error "begun" end)):start(),
  flow.graph("g"):add(op("WaitOp", function() error "begun" end)):start(),
  flow.new("g"):add_grouped(op("WaitOp", function() error "begun" end, { needs = { i = "integer" } }),
    { input = "list" }):start { list = { 1, 2, 3, 4, 5 } },
}
local last = op("LastOp", function() end):start()
check.equal(db.waiting, 7)
flow.sleep(1)
for i, run in ipairs(waiters) do
  run:cancel()
  run:wait()
  check.equal(run.state, "cancelled", i)
  check.lacks(run:summary(), "WaitOp")
end
check.same({ db.running, db.waiting }, { 1, 1 })
holder:wait()
last:wait()
check.same({ holder.state, last.state }, { "succeeded", "succeeded" })
check.same({ db.running, db.waiting }, { 0, 0 })

-- Success, failure, timeout, cancel, a cleanup.
local function ends(run, state)
  run:wait()
  check.equal(run.state, state)
  check.same({ db.running, db.waiting }, { 0, 0 })
end
ends(op("FailOp", function(ctx) ctx:fail "no" end):start(), "failed")
ends(op("LateOp", function() flow.sleep(9) end, { timeout = 1 }):start(), "failed")
local stopped = Slow:start()
stopped:cancel()
ends(stopped, "cancelled")
local cleaned = op("CleanOp", function(ctx) ctx:defer(function() flow.sleep(3) check.equal(db.running, 1) end) end):start()
flow.sleep(1)
check.equal(db.running, 1)
ends(cleaned, "succeeded")
ends(flow.new("f"):add(flow.new("inner"):add(op("FailOp", error, { limit = {} })), { limit = db }):start(), "failed")

-- It holds none while it waits for its next attempt, and comes after those that have waited.
local order = {}
local Again = op("AgainOp", function(ctx)
  order[#order + 1] = "attempt " .. ctx.attempt
  if ctx.attempt == 1 then ctx:fail "once more" end
  flow.sleep(1)
end, { retry = { attempts = 2, delay = 5 } })
local again = Again:start()
local other = op("OtherOp", function() order[#order + 1] = "other" flow.sleep(8) end):start()
again:wait()
other:wait()
check.same({ again.state, other.state }, { "succeeded", "succeeded" })
check.same(order, { "attempt 1", "other", "attempt 2" })
check.contains(again:summary(), "[AgainOp] Queued 3s for limit db")
again = Again:start()
other = Slow:start()
flow.sleep(6)
check.equal(db.waiting, 1)
again:cancel()
ends(other, "succeeded")
check.equal(again.state, "cancelled")

-- A circle: each holds one and waits for the other.
local a, b = flow.limit("a", 1), flow.limit("b", 1)
local problems = {}
local function nested(first, second, name)
  return op(name, function()
    flow.sleep(1)
    local inner = op(name .. "Inner", function() end, { limit = second }):run()
    if not inner.ok then problems[#problems + 1] = inner.error end
  end, { limit = first })
end
local one, two = nested(a, b, "One"):start(), nested(b, a, "Two"):start()
one:wait()
two:wait()
check.same({ one.state, two.state, #problems, problems[1].kind }, { "succeeded", "succeeded", 1, "stalled" })
check.match(problems[1].message, "^stalled: %[%a+Inner%] waits for limit '[ab]', which %[%a+%] holds$")
check.same({ a.running, b.running, a.waiting, b.waiting }, { 0, 0, 0, 0 })
-- Code of an op that waits is the op.
local graph = flow.graph("g")
for name, limits in pairs { XOp = { a, b }, YOp = { b, a } } do
  graph:add(op(name, function()
    flow.sleep(1)
    limits[2]:use(function() end)
  end, { limit = limits[1] }))
end
check.match(graph:run().error.message, "stalled: %[[XY]Op%] waits for limit '[ab]', which %[[XY]Op%] holds$")
local function circle(limit, wanted)
  return limit:use(function()
    flow.sleep(1)
    wanted:use(function() end)
  end)
end
local left = flow.spawn(circle, a, b)
local right = flow.spawn(circle, b, a)
left:wait()
right:wait()
local problem = left.error or right.error
check.same(problem.kind, "stalled")
check.match(problem.message, "waits for limit '[ab]', which %[.+%] holds")
