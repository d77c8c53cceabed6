-- A `__close` in an op is a cleanup: no stop is raised in it, and it shares the op's grace.
-- A `__close` that is cut is reported.
-- clock: real: busy code is stopped by the machine's clock
-- expect-status: 1
-- expect-stderr: a __close of [LongOp] was cut after a grace of 5s, while it waited in flow.sleep at
-- expect-stderr: the cleanup of [LongOp] at Tests/scripts/stop/closed_variables.lua:
-- expect-stderr: a __close of [BusyOp] was cut after a grace of 0.02s, while it was busy
-- expect-stderr: a __close of 'task at Tests/scripts/stop/closed_variables.lua:83' was cut after a grace of 30s,
local flow, check = require "flow", require "check"
local testing = require "flow.testing"
local hostile = require "hostile"

local lines
local function note(text) lines[#lines + 1] = text end
-- A value whose closing executes `fn`.
local function closing(name, fn)
  return setmetatable({}, { __close = function(_, raised)
    fn()
    note(name .. ": " .. (raised and raised.kind or "nil"))
  end })
end
local function pauses(name, seconds) return closing(name, function() flow.sleep(seconds) end) end
local function run(op, duration)
  lines = {}
  local done = testing.run(op)
  check.equal(done.duration, duration + 0.0)
  -- Code that looks at a failure has it not reported.
  local _ = done.error
  return done
end

-- All of an op share its grace, cleanups included, and the error is the stop's.
local done = run(flow.op("TidyOp", { timeout = 1, grace = 5, run = function(ctx)
  ctx:defer(function() flow.sleep(1) note "defer" end)
  local _ <close> = pauses("outer", 2)
  local _ <close> = pauses("inner", 1)
  flow.sleep(100)
end }), 5)
check.equal(done.error.kind, "timeout")
check.same(lines, { "inner: timeout", "outer: timeout", "defer" })

-- A wait that goes beyond it is cut; the others are called all the same, up to their first wait.
done = run(flow.op("LongOp", { timeout = 1, grace = 5, run = function(ctx)
  ctx:defer(function() note "defer" flow.sleep(1) note "never" end)
  local _ <close> = closing("last", function() end)
  local _ <close> = closing("outer", function() note "outer begins" flow.sleep(1) end)
  local _ <close> = pauses("inner", 10)
  flow.sleep(100)
end }), 6)
check.equal(done.error.kind, "timeout")
check.same(lines, { "outer begins", "last: timeout", "defer" })

-- One that a stop finds closing finishes that first.
run(flow.op("EndOp", { timeout = 1, run = function()
  do local _ <close> = pauses("block", 2) end
  note "code after it"
  flow.sleep(1)
  note "never"
end }), 2)
check.same(lines, { "block: nil", "code after it" })

-- Whatever stops it: a cancel, the op that has started it, a group, a task of its own.
local WaitOp = flow.op("WaitOp", function()
  local _ <close> = pauses("closed", 2)
  flow.sleep(100)
end)
local function stopped_by(stop)
  return flow.op("StopOp", function() stop() end)
end
run(stopped_by(function()
  local waiting = WaitOp:start()
  flow.sleep(1)
  waiting:cancel "enough"
  waiting:wait()
  check.equal(waiting.error.message, "cancelled: enough")
end), 3)
check.same(lines, { "closed: cancelled" })
run(flow.new("f"):add_parallel(WaitOp, flow.op("FailOp", function() flow.sleep(1) error "bad" end)), 3)
check.same(lines, { "closed: cancelled" })
-- Of a task that closes for so many seconds.
local function cancelled_task(name, seconds)
  return stopped_by(function()
    local task = flow.spawn(function()
      local _ <close> = pauses(name, seconds)
      flow.sleep(100)
    end)
    flow.sleep(1)
    task:cancel()
    task:wait()
  end)
end
run(cancelled_task("in time", 29), 30)
check.same(lines, { "in time: cancelled" })
run(cancelled_task("too long", 31), 31)
check.same(lines, {})
run(flow.machine { name = "m", start = "a", timeout = 1, flow.step("a", { run = function()
  local _ <close> = pauses("step", 2)
  flow.sleep(100)
end }) }, 3)
check.same(lines, { "step: timeout" })

-- In a coroutine of the body, and below a C function.
run(flow.op("WrapOp", { timeout = 1, run = function()
  coroutine.wrap(function()
    local _ <close> = pauses("coroutine", 2)
    flow.sleep(100)
  end)()
end }), 3)
check.same(lines, { "coroutine: timeout" })
-- Often: the watchdog may ask it to stop while the error is on its way to the `__close`.
for _ = 1, 1000 do
  run(flow.op("SortOp", { timeout = 1, run = function()
    table.sort({ 1, 2 }, function()
      local _ <close> = pauses("comparator", 2)
      flow.sleep(100)
    end)
  end }), 3)
  check.same(lines, { "comparator: timeout" })
end

-- A stop while a `__close` is busy: it finishes within the grace, and what comes after it is stopped.
local function busy(seconds)
  local finish = os.clock() + seconds
  while os.clock() < finish do end
end
lines = {}
done = flow.op("BusyEndOp", { timeout = 0.01, run = function()
  do local _ <close> = closing("busy", function() busy(0.05) end) end
  note "code after it"
  while true do end
end }):run()
check.equal(done.error.kind, "timeout")
check.equal(done.duration < 1 + hostile.slack, true, "duration")
check.same(lines, { "busy: nil", "code after it" })
-- No function with variable arguments is taken for a `__close`, waiting or busy.
for _, body in ipairs {
  function(...) flow.sleep(100, ...) end,
  function(...) pcall(function(...) flow.sleep(100, ...) end, ...) end,
  function(...) pcall(pcall, function(_, ...) flow.sleep(100, ...) end, ...) end,
  function(...) return xpcall(function(...) flow.sleep(100, ...) end, tostring, ...) end,
  load "require('flow').sleep(100)",
} do
  done = testing.run(flow.op("VarargOp", { timeout = 1, run = function(_, ...) return body(...) end })(1, 2, 3))
  check.equal(done.duration, 1.0)
  check.equal(done.error.kind, "timeout")
end
for _, body in ipairs {
  function(...) while ... do end end,
  function(...) while true do pcall(function(...) while ... do end end, ...) end end,
  function(...) while true do xpcall(function(...) while ... do end end, tostring, ...) end end,
} do
  done = flow.op("VarargOp", { timeout = 0.01, run = function(_, ...) return body(...) end })(1, 2, 3):run()
  check.equal(done.error.kind, "timeout")
  check.equal(done.duration < 1 + hostile.slack, true, "duration")
end
lines = {}
done = flow.op("VarargOp", { timeout = 0.01, run = function(...)
  local closed <close> = setmetatable({}, { __close = function(...) busy(0.03) note(#{ ... }) end })
  while ... do end
end }):run()
check.equal(done.error.kind, "timeout")
check.same(lines, { 1 })
-- However deep it is.
lines = {}
done = flow.op("DeepOp", { timeout = 0.01, run = function()
  local function deep(n)
    if n > 0 then return 1 + deep(n - 1) end
    busy(0.05)
    return 0
  end
  do local _ <close> = closing("deep", function() deep(150000) end) end
  while true do end
end }):run()
check.equal(done.error.kind, "timeout")
check.same(lines, { "deep: nil" })
-- A body that was busy: its `__close` may wait, and be busy, within the grace.
lines = {}
done = flow.op("LoopOp", { timeout = 0.01, run = function()
  local _ <close> = pauses("waits", 0.002)
  local _ <close> = closing("busy", function() busy(0.002) end)
  while true do end
end }):run()
check.equal(done.error.kind, "timeout")
check.same(lines, { "busy: nil", "waits: nil" })
lines = {}
done = flow.op("BusyOp", { timeout = 0.01, grace = 0.02, run = function()
  local _ <close> = closing("never", function() while true do end end)
  while true do end
end }):run()
check.equal(done.error.kind, "timeout")
check.equal(done.duration < 1 + hostile.slack, true, "duration")
check.same(lines, {})

-- In a worker, too.
done = flow.op("WorkerOp", { thread = "worker", timeout = 0.02, gives = {}, run = function(ctx)
  local _ <close> = setmetatable({}, { __close = function() flow.sleep(0.03) ctx:log "closed" end })
  flow.sleep(100)
end }):run()
check.equal(done.error.kind, "timeout")
check.contains(done:summary(), "[WorkerOp] closed")
