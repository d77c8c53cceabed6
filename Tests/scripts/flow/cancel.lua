-- run:cancel reaches every wait in steps, groups, parallel ops, retries and callbacks.
local flow, check = require "flow", require "check"
local caught
local SleepOp = flow.op("SleepOp", function()
  local _, raised = pcall(flow.sleep, 10)
  caught[#caught + 1] = raised
  error("whatever it makes of it")
end)
local FlakyOp = flow.op("FlakyOp", { retry = { attempts = 2, delay = 10 }, run = function() error("bad", 0) end })
local inner = flow.new("inner"):add_parallel(SleepOp, FlakyOp,
  flow.new("calls"):will_start(function() flow.sleep(10) end))
local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, run = function() flow.sleep(10) end })
local group = flow.new("group"):add_grouped(ItemOp, { input = "items", max_concurrent = 2 })
local CloseOp = flow.op("CloseOp", function(ctx) flow.sleep(0.001) ctx:log("closed") end)

local function cancelled(step, reason)
  caught = {}
  local run = flow.new("f"):add(step):add_finally(CloseOp):start { items = { 1, 2, 3 } }
  check.equal(run.state, "pending")
  check.equal(run:cancel(reason), true)
  check.equal(run:wait(5), true)
  check.equal(run:cancel(reason), false)
  check.equal(run.state, "cancelled")
  check.equal(run.error.kind, "cancelled")
  check.equal(run.error.message, reason and "cancelled: " .. reason or "cancelled")
  check.contains(run:summary(), "[CloseOp] closed", "Flow isSuccess: false")
  if run.duration > 5 then error("it wasn't cancelled at once") end
  return check.masked(run:summary())
end

check.contains(cancelled(inner, "enough"), "T [FlakyOp] Retry 2/2 in 10s: bad\n",
  "T [SleepOp] DidFinish: cancelled: enough\n", "T [FlakyOp] DidFinish: cancelled: enough\n",
  "T [calls] DidFinish: cancelled: enough\n", "T [inner] DidFinish: cancelled: enough\n")
check.equal(#caught, 1)
check.equal(caught[1].kind, "cancelled")
check.equal(caught[1].message, "cancelled: enough")

check.contains(cancelled(group), "T [ItemOp #1] DidFinish: cancelled\n",
  "T [ItemOp #2] DidFinish: cancelled\n", "T [group] DidFinish: cancelled\n")
local predicate = flow.new("cases"):case(function() flow.sleep(10) return true end):add(CloseOp)
check.contains(cancelled(predicate, "enough"), "T [Cases] DidFinish: cancelled: enough\n")

-- A final step that runs isn't reached; what it belongs to is cancelled all the same.
local run = flow.new("f"):add_finally(CloseOp):start()
check.equal(run:cancel(), true)
run:wait()
check.equal(run.state, "cancelled")
check.contains(run:summary(), "[CloseOp] DidFinish: successfully")

-- A callback, a predicate and an op that cancel their own run, and wait then.
for _, build in ipairs {
  function(f, body) return f:will_start(body) end,
  function(f, body) return f:case(body) end,
  function(f, body) return f:add(flow.op("SelfOp", function(ctx) body(ctx.run) end)) end,
} do
  local own
  local made = build(flow.new("self"):will_start(function(r) own = r end), function()
    own:cancel("by itself")
    flow.sleep(10)
    error("it went on")
  end):run()
  check.equal(made.state, "cancelled")
  check.equal(made.error.message, "cancelled: by itself")
  if made.duration > 5 then error("it wasn't cancelled at once") end
end

-- Bad reasons.
check.usage(function() run:cancel {} end, "'cancel'", "#1", "string", "table")
check.usage(function() run:cancel(5) end, "'cancel'", "#1", "string", "number")
