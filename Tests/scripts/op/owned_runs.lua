-- Runs started by an op end with it if it fails, and otherwise with its run.
local flow, check = require "flow", require "check"
local children
local ChildOp = flow.op("ChildOp", function(ctx)
  ctx:defer(function() flow.sleep(0.001) children[#children + 1] = "closed" end)
  flow.sleep(10)
end)
local child
local function starter(body, policy)
  policy = policy or {}
  policy.run = function(ctx)
    child = flow.new("child"):add(ChildOp):start()
    return body(ctx)
  end
  return flow.op("StartOp", policy)
end

children = {}
local run = starter(function() error("bad") end):run()
check.equal(run.ok, false)
check.same(children, { "closed" })
check.equal(child.state, "cancelled")
check.contains(child.error.message, "cancelled: ", "bad")
check.contains(check.masked(run:summary()),
  "T [StartOp] WillStart\nT [StartOp/child] WillStart\nT [StartOp/ChildOp] WillStart\n",
  "T [StartOp/child] DidFinish: cancelled: ", "T [StartOp] DidFinish: withError: ")

children = {}
run = starter(function() flow.sleep(10) end, { timeout = 5 }):run()
check.same(children, { "closed" })
check.equal(child.error.message, "cancelled: timed out after 5s")
check.equal(run.error.kind, "timeout")

-- One that succeeds leaves them to its run, which cancels them when its last op has ended.
children = {}
local state
local settled
run = flow.new("f"):add(starter(function() end))
  :add(flow.op("NextOp", function() flow.sleep(0.005) state = child.state end))
  :did_finish(function() settled = #children end)
  :run()
check.equal(state, "pending")
check.equal(run.ok, true)
check.equal(settled, 1)
check.equal(child.error.message, "cancelled")
check.contains(check.masked(run:summary()), [[
T [NextOp] DidFinish: successfully
T [StartOp/ChildOp] DidFinish: cancelled
T [StartOp/child] DidFinish: cancelled
T [DataBucket] end with:
]])

-- A run that is returned is the op's own end: its failure is the op's.
local raised = {}
local BadOp = flow.op("BadOp", function() flow.sleep(0.001) error(raised) end)
run = flow.op("FollowOp", function() return BadOp:start() end):run()
check.equal(run.error.cause, raised)
check.equal(run.error.op, "BadOp")

-- A follower that times out takes the run with it.
children = {}
run = starter(function() return child end, { timeout = 5 }):run()
check.equal(run.error.kind, "timeout")
check.same(children, { "closed" })
