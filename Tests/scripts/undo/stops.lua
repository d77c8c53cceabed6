-- A cancelled flow, and one whose time is over, is undone; stops don't reach into undos, but limit their time.
local flow, check = require "flow", require "check"

local undone
local function op(name, seconds)
  return flow.op(name, {
    run = function() end,
    undo = function(ctx)
      flow.sleep(seconds or 1)
      undone[#undone + 1] = name .. " " .. ctx.error.kind
    end,
  })
end
local SlowOp = flow.op("SlowOp", function() flow.sleep(100) end)
local f = flow.new("f"):add(op "AOp"):add(op "BOp"):add(SlowOp)

undone = {}
local run = f:start()
flow.sleep(0.5)
run:cancel("enough")
run:wait()
check.equal(run.state, "cancelled")
check.same(undone, { "BOp cancelled", "AOp cancelled" })
check.contains(check.masked(run:summary()), "T [AOp] Undo: successfully")

undone = {}
run = f:copy():with { timeout = 3 }:run()
check.equal(run.error.kind, "timeout")
check.same(undone, { "BOp timeout", "AOp timeout" })

-- A stop during the undos doesn't reach them.
undone = {}
local failing = flow.new("f"):add(op "AOp"):add(op "BOp")
  :add(flow.op("FailOp", function(ctx) ctx:fail("boom") end))
run = failing:start()
flow.sleep(0.1)
run:cancel()
run:wait()
check.equal(run.cancelled, true)
check.same(undone, { "BOp error", "AOp error" })

-- A nested flow with a time limit.
undone = {}
run = flow.new("outer"):add(op "OuterOp"):add(f, { timeout = 2 }):run()
check.equal(run.error.kind, "timeout")
check.same(undone, { "BOp timeout", "AOp timeout", "OuterOp timeout" })

-- A cancel that comes while a flow which has succeeded waits for a task that an op has left.
undone = {}
local LeaveOp = flow.op("LeaveOp", function()
  flow.spawn(function()
    local closed <close> = setmetatable({}, { __close = function() flow.sleep(5) end })
    flow.sleep(100)
  end)
end)
local tidied = 0
run = flow.new("f"):add(op "AOp"):add(LeaveOp):add_finally(flow.op("TidyOp", function() tidied = tidied + 1 end))
  :with { retry = 2 }:start()
flow.sleep(1)
check.equal(run.state, "pending")
check.same(undone, {})
run:cancel()
run:wait()
check.equal(run.state, "cancelled")
check.same(undone, { "AOp cancelled" })
check.equal(tidied, 1)
