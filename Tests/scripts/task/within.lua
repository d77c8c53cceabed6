-- `flow.within` and `await { timeout = … }` stop code that takes too long, and say so where they were called.
local flow, check = require "flow", require "check"

-- In time: all results, and those of a task that is returned.
check.same({ flow.within(5, function(...) flow.sleep(1) return select("#", ...), ... end, "a", nil, "c") },
  { 3, "a", nil, "c" })
check.equal(select("#", flow.within(5, function() end)), 0)
check.equal(flow.within(5, flow.with_delay, 1, "later"), "later")
check.equal(flow.within(5, function() return flow.with_delay(1, "first"), "second" end), "first")
check.raises(function() flow.within(5, error, "broken") end, "broken")
check.raises(function() flow.within(5, function() flow.sleep(1) error { code = 7 } end) end)

-- Too late: the error is the one of an op's timeout, with the place where the code was.
local began = flow.now()
local late = check.raises(function() flow.within(2, function() flow.sleep(60) end) end, "timed out after 2s")
check.equal(late.kind, "timeout")
check.match(late.place, "within.lua:%d+, in flow.sleep")
check.equal(flow.now() - began, 2.0)
late = check.raises(function() flow.within(2, flow.with_delay, 60) end, "timed out after 2s")
check.equal(late.kind, "timeout")

-- Code that catches the error is stopped nevertheless; its `__close`s run, with the time that they need.
local log = {}
check.raises(function()
  flow.within(2, function()
    local closing <close> = setmetatable({}, { __close = function() flow.sleep(3) log[#log + 1] = "closed" end })
    pcall(flow.sleep, 60)
    log[#log + 1] = "went on"
    flow.sleep(60)
    log[#log + 1] = "never"
  end)
end, "timed out after 2s")
check.same(log, { "went on", "closed" })

-- Work that the code started and waits for ends with it; work that it left in time continues.
local program, run, left
local SlowOp = flow.op("SlowOp", function(ctx) ctx:defer(function() log[#log + 1] = "undone" end) flow.sleep(60) end)
check.raises(function()
  flow.within(2, function()
    program = flow.with_delay(60)
    run = SlowOp:start()
    run:await()
  end)
end, "timed out")
check.equal(program.state, "cancelled")
check.equal(run.state, "cancelled")
check.equal(log[#log], "undone")
flow.within(2, function() left = flow.with_delay(10, "left") end)
check.equal(left:await(), "left")

-- Limits within limits: the nearest one stops its code, and the outer code continues.
check.equal(flow.within(10, function()
  local ok, err = pcall(flow.within, 2, flow.sleep, 60)
  flow.sleep(3)
  return tostring(ok) .. " " .. err.kind
end), "false timeout")
local outer = check.raises(function()
  flow.within(2, function() flow.within(10, flow.sleep, 60) end)
end, "timed out after 2s")
check.equal(outer.kind, "timeout")

-- In an op: its error, which names the op, and its timeout before the code's.
local InnerOp = flow.op("InnerOp", function() flow.within(2, flow.sleep, 60) end)
check.contains(InnerOp:run().error, "[InnerOp] timed out after 2s")
check.contains(InnerOp:with({ timeout = 1 }):run().error, "timed out after 1s")
local attempts = 0
local RetriedOp = flow.op("RetriedOp", { retry = 3, run = function()
  attempts = attempts + 1
  flow.within(attempts < 3 and 1 or 9, flow.sleep, 5)
end })
check.equal(RetriedOp:run().ok, true)
check.equal(attempts, 3)

-- A cancel of the waiting code reaches the limited code.
local stopped
local waiter = flow.spawn(function()
  flow.within(50, function()
    local closing <close> = setmetatable({}, { __close = function() stopped = true end })
    flow.sleep(60)
  end)
end)
waiter:cancel()
waiter:wait()
check.equal(stopped, true)

-- `await` with a limit stops the task, also one that others await, and ends after its cleanups.
run = SlowOp:start()
began = flow.now()
late = check.raises(function() run:await { timeout = 2 } end, "timed out after 2s")
check.equal(late.kind, "timeout")
check.equal(run.state, "cancelled")
check.contains(run.error, "cancelled: timed out after 2s")
check.equal(flow.now() - began, 2.0)
check.equal(flow.with_delay(1, "soon"):await { timeout = 2 }, "soon")
check.equal(flow.resolved("now"):await { timeout = 2 }, "now")
check.equal(flow.resolved("now"):await {}, "now")
check.raises(function() flow.failed("bad"):await { timeout = 2 } end, "bad")
local context = flow.context()
check.raises(function() context.task:await { timeout = 1e9 } end, "timed out after 1e+09s")
check.equal(context.task.state, "cancelled")
local AwaitingOp = flow.op("AwaitingOp", function() flow.with_delay(60):await { timeout = 3 } end)
check.contains(AwaitingOp:run().error, "[AwaitingOp] timed out after 3s")

-- Misuse.
local function nothing() end
check.usage(function() flow.within() end, "within", "#1", "number expected, got no value")
check.usage(function() flow.within("soon", nothing) end, "within", "#1", "number expected, got string")
for _, seconds in ipairs { 0, -1, math.huge, 0 / 0 } do
  check.usage(function() flow.within(seconds, nothing) end, "within", "#1", "a finite number of seconds")
  check.usage(function() context.task:await { timeout = seconds } end, "await", "#1", "field 'timeout'")
end
check.usage(function() flow.within(1) end, "within", "#2", "function expected, got no value")
check.usage(function() flow.within(1, SlowOp) end, "within", "#2", "function expected, got op")
check.usage(function() context.task:await(2) end, "await", "#1", "table expected, got number")
check.usage(function() context.task:await { time = 2 } end, "await", "unknown field 'time'", "'timeout'")
check.usage(function() context.task:await { timeout = "2" } end, "await", "field 'timeout': number expected, got string")
