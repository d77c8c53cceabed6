-- A limit is one for the script and its workers: policies are looked after by the script, and code in workers asks it.
local flow, check = require "flow", require "check"
local db = flow.limit("db", 2)
local peak = 0
local function groups(options, run)
  peak = 0
  options.needs, options.gives, options.thread, options.run = { n = "integer" }, { m = "integer" }, "worker", run
  local Op = flow.op("WorkOp", options)
  local watched = flow.spawn(function()
    for _ = 1, 30 do
      peak = math.max(peak, db.running)
      flow.sleep(0.1)
    end
  end)
  local began = flow.now()
  local group = flow.new("g"):add_grouped(Op, { input = "ns", output = "ms", max_concurrent = 6 })
    :start { ns = { 1, 2, 3, 4, 5, 6 } }
  group:wait()
  check.equal(group.state, "succeeded", tostring(group.error))
  local took = flow.now() - began
  watched:cancel()
  check.same(group.data.ms, { 10, 20, 30, 40, 50, 60 })
  check.same({ took, peak, db.running, db.waiting }, { 3.0, 2, 0, 0 })
end
groups({ limit = db }, function(ctx)
  flow.sleep(1)
  ctx:set("m", ctx:get "n" * 10)
end)
-- Code in a worker, by name, with the script's numbers or without.
groups({}, function(ctx)
  ctx:set("m", flow.limit("db"):use(function(n) flow.sleep(1) return n * 10 end, ctx:get "n"))
end)
groups({}, function(ctx)
  ctx:set("m", flow.limit("db", 2):use(function(n) flow.sleep(1) return n * 10 end, ctx:get "n"))
end)
-- One that holds it doesn't take it again there.
groups({ limit = db }, function(ctx)
  ctx:set("m", flow.limit("db"):use(function(n) flow.sleep(1) return n * 10 end, ctx:get "n"))
end)
-- The script waits for code in workers, and the reverse.
local Hold = flow.op("HoldOp", { thread = "worker", run = function() flow.limit("db"):use(function() flow.sleep(2) end) end })
local one, two = Hold:start(), Hold:start()
flow.sleep(1)
check.equal(db.running, 2)
local began = flow.now()
db:use(function() check.equal(flow.now() - began, 1.0) end)
one:wait()
two:wait()
check.same({ one.state, two.state }, { "succeeded", "succeeded" })
-- A stop ends the wait, and gives back what it holds.
local three, four, five = Hold:start(), Hold:start(), Hold:start()
flow.sleep(0.5)
check.same({ db.running, db.waiting }, { 2, 1 })
five:cancel()
three:cancel()
five:wait()
three:wait()
check.same({ db.running <= 1, db.waiting }, { true, 0 })
four:wait()
check.same({ db.running, db.waiting }, { 0, 0 })
-- Mistakes there.
local function fails(run, ...)
  local failed = flow.op("BadOp", { thread = "worker", run = run }):run()
  check.equal(failed.state, "failed")
  check.contains(failed.error.message, ...)
end
fails(function() flow.limit("dbs"):use(print) end, "limit 'dbs' isn't defined")
fails(function() flow.limit("db", 3):use(print) end, "limit 'db' is defined with other numbers: max_concurrent = 2")
fails(function() return flow.limit("db").running end, "a worker knows only the name of a limit")
fails(function() flow.limit("db"):use() end, "bad argument #1 to 'use'")
check.raises(function() flow.op("BadOp", { thread = "worker", run = function() db:use(print) end }) end,
  "upvalue 'db'", "write flow.limit(name) inside the function")
