-- limit:use calls a function while it holds the limit, and returns or raises what the function does.
local flow, check = require "flow", require "check"
local db = flow.limit("db", 1)
check.same({ db:use(function(...) return select("#", ...), ... end, 1, nil, 3) }, { 3, 1, nil, 3 })
check.same({ db:use(function() flow.sleep(1) check.equal(db.running, 1) return "a", nil, "c" end) }, { "a", nil, "c" })
check.raises(function() db:use(function() error("boom", 0) end) end, "boom")
check.raises(function() db:use(function() flow.sleep(1) error("later", 0) end) end, "later")
check.same({ db.running, db.waiting }, { 0, 0 })

local order, began = {}, flow.now()
local tasks = {}
for i = 1, 3 do
  tasks[i] = flow.spawn(function()
    return db:use(function(n)
      order[#order + 1] = n
      flow.sleep(2)
      return n * 10
    end, i)
  end)
end
check.same({ db.running, db.waiting }, { 1, 2 })
tasks[2]:cancel()
flow.sleep(0)
check.equal(db.waiting, 1)
check.same({ tasks[1]:await(), tasks[3]:await() }, { 10, 30 })
check.same({ order, flow.now() - began, db.running, db.waiting }, { { 1, 3 }, 4.0, 0, 0 })

-- Of an op with the limit, too; a timeout of the code around it ends the wait.
local holder = flow.op("HolderOp", { limit = db, run = function() flow.sleep(5) end }):start()
check.raises(function() flow.within(1, function() db:use(print) end) end, "timed out")
check.equal(db.waiting, 0)
holder:wait()
check.equal(holder.state, "succeeded")

-- A wait that nothing can end is stalled.
local never = flow.context()
local held = flow.spawn(function() db:use(function() never.task:await() end) end)
local problem = check.raises(function() db:use(function() end) end)
held:cancel()
check.equal(problem.kind, "stalled")
check.contains(problem.message, "waits for limit 'db', which [", "] holds")
