-- Continuations in a worker receive copies of the task and its result or error.
-- clock: real: the virtual clock stands still while a worker is busy
local flow = require "flow"
local check = require "check"
local W = { thread = "worker" }
local t = { 1, 2 }
check.equal(flow.resolved(t):next_on_success(function(list) list[1] = 5 return list[1] + list[2] end, W):await(), 7)
check.equal(t[1], 1)
check.equal(flow.resolved(3):next(function(task)
  assert(task.state == "succeeded" and task.completed and task.result == 3 and task.error == nil)
  return task:await() + 1
end, W):await(), 4)
check.equal(flow.failed("bad"):next_on_error(function(error) return error.message .. "!" end, W):await(), "bad!")
check.equal(flow.failed("bad"):next(function(task) return task.error.message .. task.state end, W):await(), "badfailed")
check.equal(flow.resolved(8):finally(function(task) assert(task.result == 8) end, W):await(), 8)
local failed = flow.resolved(8):finally(function() error("late", 0) end, W)
failed:wait()
check.equal(failed.error.message, "late")
-- They wait, in tasks of their own there, and follow what they return.
check.equal(flow.resolved(1):next_on_success(function(a)
  flow.sleep(0.001)
  return flow.spawn(function() flow.sleep(0.001) return a + 1 end)
end, W):await(), 2)
-- The other outcomes pass.
local passed = flow.failed("x"):next_on_success(function() return 1 end, W)
passed:wait()
check.equal(passed.error.message, "x")
-- Cancelling stops a busy one.
local busy = flow.resolved(1):next(function() while true do end end, W)
flow.sleep(0.005)
local begin = flow.now()
busy:cancel("enough")
busy:wait()
check.equal(busy.state, "cancelled")
assert(flow.now() - begin < 10)
check.usage(function() flow.resolved(1):next(print, { thread = "wroker" }) end, '"worker"')
