-- Code that holds a limit doesn't take it again further inside: in ops, flows, tasks, wrapped ops and calls.
local flow, check = require "flow", require "check"
local db = flow.limit("db", 1)
local count = 0
local Inner = flow.op("InnerOp", { limit = db, run = function()
  flow.sleep(1)
  count = count + 1
  check.same({ db.running, db.waiting }, { 1, 0 })
end })
local function done(expected, run)
  run:wait()
  check.equal(run.state, "succeeded", tostring(run.error))
  check.same({ count, db.running }, { expected, 0 })
  count = 0
end
local function holder(fn) return flow.op("HolderOp", { limit = db, run = fn }):start() end
done(1, holder(function() assert(Inner:run().ok) end))
done(2, holder(function() flow.when_all_finish({ Inner:start(), Inner:start() }):await() end))
done(1, holder(function() flow.spawn(function() assert(Inner:run().ok) end):await() end))
done(1, holder(function() flow.new("f"):add(flow.new("g"):add(Inner)):run() end))
done(1, holder(function() db:use(function() assert(Inner:run().ok) end) end))
done(1, flow.new("f"):add(flow.new("g"):add(Inner), { limit = db }):start())
done(1, flow.new("f"):add(flow.graph("g"):add(Inner), { limit = db }):start())
done(1, flow.spawn(function() db:use(function() db:use(function() assert(Inner:run().ok) end) end) end))
done(1, flow.spawn(function() db:use(function() flow.spawn(function() assert(Inner:run().ok) end):await() end) end))
done(1, flow.wrap(Inner, function(_, run) db:use(run) end):start())
local Each = flow.op("EachOp", { needs = { n = "integer" }, limit = db, run = function() count = count + 1 end })
done(3, flow.new("f"):add(flow.new("g"):add_grouped(Each, { input = "ns", limit = db }), { limit = db })
  :start { ns = { 1, 2, 3 } })
-- A run that it has started ends with it.
local late
done(0, holder(function() late = Inner:start() end))
late:wait()
check.same({ late.state, db.running, count }, { "cancelled", 0, 0 })
