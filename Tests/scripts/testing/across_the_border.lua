-- A test may settle a context of its script, and a wait for work that stands still is an error.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local NothingOp = flow.op("NothingOp", function() end)

-- A context of the script can be settled; its continuations run after the test.
local called, order = flow.context(), {}
called.task:next_on_success(function(value)
  flow.sleep(0.001)
  order[#order + 1] = value
end)
local waiting = flow.spawn(function()
  local value = called.task:await()
  order[#order + 1] = value .. " awaited"
end)
assert(testing.run(flow.op("SetOp", function()
  called:set_result("set")
  order[#order + 1] = "in the test"
  check.equal(called.task:await(), "set")
  flow.sleep(100)
end)).ok)
check.equal(order[1], "in the test")
waiting:wait()
flow.sleep(0.01)
table.sort(order)
check.same(order, { "in the test", "set", "set awaited" })

-- To wait for what stands still is an error, not a hang.
local sleeping = flow.with_delay(0.02, "slept")
local function fails(wait)
  local run = testing.run(flow.op("WaitOp", wait))
  check.equal(run.error and run.error.kind, "usage")
  return run.error.message
end
check.contains(fails(function() sleeping:await() end), "across_the_border.lua:",
  "is paused: it wasn't started in the current testing.run")
check.contains(fails(function() sleeping:wait() end), "which is paused")
check.contains(fails(function() sleeping:wait(5) end), "which is paused")
check.contains(fails(function() return sleeping end), "another event loop")
check.contains(fails(function() sleeping:next(print):await() end), "another event loop")
check.contains(fails(function() flow.when_all_succeed({ sleeping }):await() end), "another event loop")
check.equal(sleeping:await(), "slept")

-- Settled tasks cross it both ways.
local done = flow.resolved(5)
local run = testing.run(flow.op("DoneOp", function(ctx)
  ctx:set("sum", done:await() + done:next(function(task) return task.result end):await())
end))
check.equal(run.data.sum, 10)
local later = run:next(function(task) flow.sleep(0.001); return task.data.sum end)
check.equal(later:await(), 10)
check.equal(flow.when_all_succeed({ run }):await()[1].sum, 10)
check.equal(run:cancel(), false)
assert(run:wait())

-- A leftover context of the test was cancelled with it.
local left
testing.run(flow.op("LeaveOp", function() left = flow.context() end))
check.equal(left:try_set_result(1), false)
check.equal(left.task.state, "cancelled")

-- The ctx of an op outside works within, one of the test doesn't afterwards.
local inside
local outer = flow.op("OuterOp", function(ctx)
  assert(testing.run(flow.op("InnerOp", function(own)
    inside = own
    ctx:log("from within")
    ctx:set("key", "value")
    own:set("key", "own")
  end)).ok)
  check.equal(ctx:get "key", "value")
  check.raises(function() inside:log("late") end, "the op of this ctx has finished")
end):run()
assert(outer.ok, outer.error)
check.contains(outer:summary(), "[OuterOp] from within")

-- A test can cancel what stands still.
local op = flow.op("LongOp", function() flow.sleep(3600) end):start()
assert(testing.run(flow.op("CancelOp", function() op:cancel("by the test") end)).ok)
assert(op:wait())
check.equal(op.error.message, "cancelled: by the test")
assert(testing.run(NothingOp).ok)
