-- A group ends at once when it is stopped, also while items wait for an attempt or for a free slot.
local flow, check = require "flow", require "check"
local testing = require "flow.testing"

local items = { 1, 2, 3, 4, 5, 6 }
local started = {}
-- The numbers below 4 fail, and wait for their next attempt; 4 executes for a long time.
local function waiting(delay, fields)
  local op = flow.op("WaitOp", {
    needs = { n = "integer" }, retry = { attempts = 2, delay = delay },
    run = function(ctx)
      local n = ctx:get "n"
      started[#started + 1] = n .. "." .. ctx.attempt
      ctx:defer(function() started[#started + 1] = "end " .. n end)
      if n < 4 then error("again", 0) end
      flow.sleep(50)
    end,
  })
  local options = { input = "items", max_concurrent = 1 }
  for name, value in pairs(fields or {}) do options[name] = value end
  return flow.new("group"):data { items = items }:add_grouped(op, options)
end
local function trace()
  local text = table.concat(started, ", ")
  started = {}
  return text
end
local begun = "1.1, end 1, 2.1, end 2, 3.1, end 3, 4.1"

for _, delay in ipairs { 100, 1 } do  -- waiting for the delay, and for a slot after it
  -- Cancelled.
  local run = waiting(delay):start()
  check.equal(run:wait(5), false)
  check.equal(run:cancel "enough", true)
  run:wait()
  check.equal(run.state, "cancelled")
  check.equal(run.duration, 5.0)
  check.equal(trace(), begun .. ", end 4")
  local ended = 0
  for _, event in ipairs(run:events()) do if event.kind == "finish" then ended = ended + 1 end end
  check.equal(ended, 4)
  -- Timed out.
  run = testing.run(waiting(delay):with { timeout = 7 })
  check.equal(run.error.kind, "timeout")
  check.equal(run.duration, 7.0)
  check.equal(trace(), begun .. ", end 4")
  -- Another item fails for good.
  local op = flow.op("FailOp", {
    needs = { n = "integer" }, retry = { attempts = 2, delay = delay },
    run = function(ctx)
      if ctx:get "n" < 3 then error("again", 0) end
      flow.sleep(10)
      ctx:fail("for good", { retry = false })
    end,
  })
  run = flow.new("group"):data { items = items }
    :add_grouped(op, { input = "items", max_concurrent = 1 }):run()
  check.equal(run.error.message, "for good")
  check.equal(run.duration, 10.0)
  check.contains(run:summary(), "[FailOp #1] DidFinish: cancelled: group failed",
    "[FailOp #2] DidFinish: cancelled: group failed", "[FailOp #3] DidFinish: withError: for good")
  check.lacks(run:summary(), "#4]")
end

-- The last attempts of items that wait for a slot are failures like any other.
local run = waiting(1, { allow_failure = true, failures = "failed" }):run()
assert(run.ok, run.error)
check.equal(#run.data.failed, 3)
check.equal(run.data.failed[3].error.message, "again")
check.equal(run.duration, 150.0)
trace()

-- An op that ends without having waited for its group's items leaves none of them.
local inner = flow.op("OuterOp", { timeout = 3, run = function() waiting(1):start():await() end })
run = testing.run(inner)
check.equal(run.error.kind, "timeout")
check.equal(trace(), begun .. ", end 4")
