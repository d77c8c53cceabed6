-- A program belongs to the op that started it: it ends with the op if that fails, else with the run.
-- clock: real: the virtual clock stands still while a program runs
local flow, check = require "flow", require "check"
local left

-- An op that fails stops it, and ends after it.
local FailOp = flow.op("FailOp", function(ctx)
  left = flow.exec { "sleep", "100" }
  flow.sleep(0.001)
  ctx:fail("no")
end)
check.equal(FailOp:run().error.message, "no")
check.equal(left.state, "cancelled")
check.equal(left.error.message, "cancelled: no")

-- An op that is stopped while it waits for it; a timeout shows as the reason. On a busy machine it may come
-- before the program has begun.
local function times_out(op)
  left = nil
  repeat check.equal(op:run().error.kind, "timeout") until left
end
local AwaitOp = flow.op("AwaitOp", { timeout = 0.02, run = function()
  left = flow.exec { "sh", "-c", "sleep 100 & wait" }
  left:await()
end })
times_out(AwaitOp)
check.equal(left.state, "cancelled")
check.contains(left.error.message, "timed out after 0.02s")
local ReturnOp = flow.op("ReturnOp", { timeout = 0.02, run = function()
  left = flow.exec { "sleep", "100" }
  return left
end })
times_out(ReturnOp)
check.equal(left.state, "cancelled")

-- One that fails is tried again.
local attempts = 0
local RetryOp = flow.op("RetryOp", { retry = 3, run = function()
  attempts = attempts + 1
  return flow.exec { "sh", "-c", "exit " .. 3 - attempts }
end })
check.equal(RetryOp:run().ok, true)
check.equal(attempts, 3)

-- A program of an op that succeeds runs until the run has nothing left to do.
local StartOp = flow.op("StartOp", function() left = flow.exec { "sleep", "100" } end)
local during
local LaterOp = flow.op("LaterOp", function()
  flow.sleep(0.001)
  during = left.state
end)
check.equal(flow.new("leaves"):add(StartOp):add(LaterOp):run().ok, true)
check.equal(during, "pending")
check.equal(left.state, "cancelled")
check.equal(left.error.message, "cancelled")

-- A cleanup may run programs.
local cleaned
local CleanOp = flow.op("CleanOp", function(ctx)
  ctx:defer(function() cleaned = flow.exec({ "echo", "clean" }):await().stdout end)
  ctx:fail("no")
end)
check.equal(CleanOp:run().error.message, "no")
check.equal(cleaned, "clean\n")
