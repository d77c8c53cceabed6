-- An op that returns a task ends as the task does, and stopping the op stops the task.
-- clock: real: the virtual clock stands still while a program runs
local flow, check = require "flow", require "check"

-- Programs.
local kept
local ExecutingOp = flow.op("ExecutingOp", function(_, ...)
  kept = flow.exec { "sh", "-c", ... }
  return kept
end)
local run = ExecutingOp("sleep 0.02; exit 0"):run()
check.equal(run.ok, true)
check.equal(kept.state, "succeeded")
run = ExecutingOp("exit 4"):run()
check.equal(run.state, "failed")
check.equal(run.error.code, 4)
check.equal(run.error.op, "ExecutingOp")
check.equal(run.error, kept.error)
run = ExecutingOp("sleep 100"):start()
check.equal(run:cancel("enough"), true)
run:wait()
check.equal(run.state, "cancelled")
check.equal(run.error.message, "cancelled: enough")
-- The op ends after the task: all that it started has ended by then.
check.equal(kept.state, "cancelled")
check.equal(kept.error.message, "cancelled: enough")

-- Also after waits, and when the task has ended already.
local LateOp = flow.op("LateOp", function(_, status)
  local task = flow.exec { "sh", "-c", "exit " .. status }
  task:wait()
  return task
end)
check.equal(LateOp(0):run().ok, true)
check.equal(LateOp(5):run().error.code, 5)

-- Runs, nested.
local InnerOp = flow.op("InnerOp", function(ctx, seconds)
  flow.sleep(seconds)
  ctx:fail("inner", { code = 7 })
end)
local inner
local OuterOp = flow.op("OuterOp", function(_, seconds)
  inner = InnerOp(seconds):start()
  return inner
end)
run = OuterOp(0.01):run()
check.equal(run.error.message, "inner")
check.equal(run.error.code, 7)
check.equal(run.error, inner.error)
local MostOuterOp = flow.op("MostOuterOp", function() return OuterOp(100):start() end)
run = MostOuterOp:start()
run:cancel("enough")
run:wait()
check.equal(run.error.message, "cancelled: enough")
check.equal(inner.error.message, "cancelled: enough")

-- A member that fails stops the tasks of the others, which show why.
local stopped = {}
local MemberOp = flow.op("MemberOp", function(ctx)
  if ctx.index == 3 then
    flow.sleep(0.01)
    error("on purpose", 0)
  end
  stopped[ctx.index] = flow.exec { "sleep", "100" }
  return stopped[ctx.index]
end)
run = flow.new("group"):data { list = { 1, 2, 3 } }
  :add_grouped(MemberOp, { input = "list", as = "item", max_concurrent = 3 }):run()
check.equal(run.error.message, "on purpose")
for i = 1, 2 do
  check.equal(stopped[i].state, "cancelled")
  check.contains(stopped[i].error.message, "cancelled: ")
end

-- One that waits for itself, or for the run that waits for it, is stalled.
local SelfOp = flow.op("SelfOp", function(ctx) return ctx.run end)
run = SelfOp:start()
check.equal(run.error.message, "stalled: [SelfOp] never finished")
local ChildOp = flow.op("ChildOp", function(_, parent) return parent end)
local child
local ParentOp = flow.op("ParentOp", function(ctx)
  child = ChildOp(ctx.run):start()
  return child
end)
run = ParentOp:run()
check.equal(run.completed, true)
check.equal(run.ok, false)
check.equal(child.ok, false)
