-- The error of a timeout has the place of the op in tostring and in its traceback.
local flow, check = require "flow", require "check"
local file = arg[0]
local function timed_out(run, path, place)
  run:wait()
  check.equal(run.error.kind, "timeout")
  check.equal(run.error.message, "timed out after 0.2s")
  check.equal(run.error.place, place and file .. place)
  check.equal(tostring(run.error),
    ("[%s] timed out after 0.2s%s"):format(path, place and (" (at %s%s)"):format(file, place) or ""))
  if place then check.contains(run.error.traceback, "stack traceback:\n", file .. place:match(":%d+") .. ": in ") end
end
local function op(run, options)
  local all = { timeout = 0.2, run = run }
  for name, value in pairs(options or {}) do all[name] = value end
  return flow.op("SlowOp", all)
end
timed_out(op(function() flow.sleep(10) end):run(), "SlowOp", ":18, in flow.sleep")
timed_out(op(function()
  local function wait(task) task:await() end
  wait(flow.with_delay(10))
end):run(), "SlowOp", ":20, in await")
-- One that is busy, in a function of C too.
timed_out(op(function()
  while true do end
end):run(), "SlowOp", ":25")
timed_out(op(function()
  pcall(function() while true do end end)
end):run(), "SlowOp", ":28")
timed_out(op(function()
  flow.sleep(0)
  while true do end
end):run(), "SlowOp", ":32")
timed_out(op(function()
  table.sort({ 1, 2, 3 }, function()
    while true do end
  end)
end):run(), "SlowOp", ":36")
-- In a worker, as an item, and a flow that encloses the op.
timed_out(op(function() flow.sleep(10) end, { thread = "worker" }):run(), "SlowOp", ":40, in flow.sleep")
timed_out(flow.new("group"):data { list = { 1 } }
  :add_grouped(op(function() flow.sleep(10) end), { input = "list", as = "n" }):run(),
  "group/SlowOp #1", ":42, in flow.sleep")
timed_out(flow.new("outer"):add(flow.new("inner"):add(op(function() flow.sleep(10) end, { timeout = 5 })),
  { timeout = 0.2 }):run(), "outer/inner", ":44, in flow.sleep")
-- An op of the engine has no place.
timed_out(flow.ops.SleepOp(10):with { timeout = 0.2 }:run(), "SleepOp")
-- A function of a machine, busy before its first wait and after it.
local function machine(run)
  return flow.machine { name = "m", start = "a", flow.step("a", { run = run }) }:with { timeout = 0.2 }
end
timed_out(machine(function()
  while true do end
end):start(), "m", ":53")
timed_out(machine(function()
  flow.sleep(0)
  while true do end
end):start(), "m", ":57")
