-- A limit is one for all groups, flows and runs: no more than its number execute at a time, in the order in which they came.
local flow, check = require "flow", require "check"
local db = flow.limit("db", 2)
check.same({ db.name, db.max_concurrent, db.rate, db.running, db.waiting, tostring(db) },
  { "db", 2, nil, 0, 0, "limit: db" })
check.equal(flow.limit "db", db)
check.equal(flow.limit("db", 2), db)

local function ends(...)
  for _, run in ipairs { ... } do
    run:wait()
    check.equal(run.state, "succeeded", tostring(run.error))
  end
end
local order, now, most = {}, 0, 0
local function op(limit)
  return flow.op("QueryOp", { needs = { n = "string" }, gives = { m = "string" }, limit = limit, run = function(ctx)
    order[#order + 1], now = ctx:get "n", now + 1
    most = math.max(most, now)
    check.equal(db.running >= now, true)
    flow.sleep(1)
    now = now - 1
    ctx:set("m", ctx:get "n" .. "!")
  end })
end
-- By itself, by its name, in a list; of the op, of a place, of a group.
local began = flow.now()
local runs = {}
for i, limit in ipairs { db, "db", { db } } do runs[i] = op(limit):start { n = "r" .. i } end
runs[4] = flow.new("f"):add(op(), { limit = db }):start { n = "f" }
runs[5] = flow.new("g")
  :add_grouped(op(), { input = "list", output = "ms", max_concurrent = 9, limit = db })
  :start { list = { "g1", "g2" } }
runs[6] = op():with { limit = "db" }:start { n = "w" }
runs[7] = flow.graph("h"):add(op(db)):start { n = "h" }
check.equal(db.waiting, 6)
ends(table.unpack(runs))
check.same(order, { "r1", "r2", "r3", "f", "g1", "g2", "w", "h" })
check.same({ most, flow.now() - began, db.running, db.waiting }, { 2, 4.0, 0, 0 })
check.same(runs[5].data.ms, { "g1!", "g2!" })

-- A group's own limit adds to those of its op; what needs several takes all of them, in one order.
local one = flow.limit("one", { max_concurrent = 1 })
began = flow.now()
local a = flow.new("a"):add_grouped(op(db), { input = "list", limit = one }):start { list = { "x", "y" } }
local b = op { one, db }:start { n = "z" }
ends(a, b)
check.equal(flow.now() - began, 3.0)
check.same({ op({ one, "db" }).limit[1], op(db).limit, op().limit }, { one, db })
check.equal(flow.dispatcher { input = "l", limit = "one" }.limit, one)

-- rate limits how many start in a time.
local times
local Tick = flow.op("TickOp", { needs = { n = "integer" }, limit = flow.limit("api", { rate = { 2, per = 10 } }),
  run = function() times[#times + 1] = flow.now() - began end })
times, began = {}, flow.now()
local first = flow.new("t"):add_grouped(Tick, { input = "ns", max_concurrent = 9 }):start { ns = { 1, 2, 3 } }
local second = Tick:start { n = 4 }
ends(first, second)
check.same(times, { 0.0, 0.0, 10.0, 10.0 })
check.same({ flow.limit("api").max_concurrent, flow.limit("api").rate[1], flow.limit("api").rate.per }, { math.huge, 2, 10.0 })

-- A machine and a flow hold theirs as a whole.
local steps = flow.machine { name = "m", start = "s", limit = one, flow.step("s", { run = function() flow.sleep(1) end }) }
local inner = flow.new("inner"):add(flow.op("AOp", function() flow.sleep(1) end)):add(flow.op("BOp", function() flow.sleep(1) end))
began = flow.now()
local machine, outer = steps:start(), flow.new("outer"):add(inner, { limit = one }):start()
ends(machine, outer)
check.equal(flow.now() - began, 3.0)
