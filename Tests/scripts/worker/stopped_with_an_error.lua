-- Stopping an op stops its work in a worker with the same reason.
-- The reason may be a cancellation that was awaited, or caught and raised again, or a failed group.
-- clock: real: the virtual clock stands still while a worker is busy
local flow = require "flow"
local check = require "check"
-- Says that it waits, and writes why it was stopped. Another task says so: it runs only once the op
-- waits, and code that is stopped before it waits can't write why.
local name = os.tmpname()
local ready = name .. ".ready"
local WorkOp = flow.op("WorkOp", {
  needs = { name = "string" }, thread = "worker",
  run = function(ctx)
    local name = ctx:get("name", "string")
    flow.spawn(function()
      flow.sleep(0.001)
      assert(io.open(name .. ".ready", "w")):close()
    end)
    local ok, e = pcall(flow.sleep, 1000)
    local file = assert(io.open(name, "w"))
    file:write(tostring(ok), " ", e.kind, " ", e.message, " ", tostring(e.note and e.note.text))
    file:close()
    error(e)
  end,
})
local function reason()
  local file = assert(io.open(name))
  local text = file:read("a")
  file:close()
  assert(io.open(name, "w")):close()
  return text
end
local function start()
  os.remove(ready)
  return WorkOp:start { name = name }
end
local function wait_until_ready()
  while not os.remove(ready) do flow.sleep(0.002) end
end
local function stopped(body, expected)
  local run = flow.op("OuterOp", function(ctx)
    start()
    wait_until_ready()
    return body(ctx)
  end):run()
  check.equal(reason(), expected)
  return run
end

-- Awaited.
local run = stopped(function() flow.cancelled("enough"):await() end, "false cancelled cancelled: enough nil")
check.equal(run.state, "cancelled")
check.equal(run.error.message, "cancelled: enough")
-- Caught, given a field, and raised again: the worker has a copy of it.
run = stopped(function()
  local _, e = pcall(function() flow.cancelled("enough"):await() end)
  e.note = { text = "why" }
  error(e)
end, "false cancelled cancelled: enough why")
check.equal(run.error.note.text, "why")
-- A field that can't travel goes as text.
stopped(function()
  local _, e = pcall(function() flow.cancelled("enough"):await() end)
  e.note = { text = setmetatable({}, { __tostring = function() return "hm" end }), print }
  error(e)
end, "false cancelled cancelled: enough nil")
-- Set as an error, and passed on by a task that the op returns.
run = stopped(function()
  local c = flow.context()
  local _, e = pcall(function() flow.cancelled("set"):await() end)
  c:set_error(e)
  return c.task
end, "false cancelled cancelled: set nil")
check.equal(run.error.message, "cancelled: set")
-- An error that is no cancellation shows as a reason.
run = stopped(function() error("boom", 0) end, "false cancelled cancelled: boom nil")
check.equal(run.error.message, "boom")
run = stopped(function(ctx) ctx:fail("bad", { code = 5 }) end, "false cancelled cancelled: bad nil")
check.equal(run.error.code, 5)

-- A task that is cancelled with the error of another one, and a continuation in a worker.
local first = flow.spawn(function() flow.sleep(10) end)
local next = first:next(function(task)
  local file = assert(io.open(name, "w"))
  file:write(task.state, " ", task.error.message)
  file:close()
end, { thread = "worker" })
first:cancel("first")
next:wait()
check.equal(reason(), "cancelled cancelled: first")
local busy = flow.resolved(1):next(function() while true do pcall(error) end end, { thread = "worker" })
flow.sleep(0.02)
check.equal(busy:cancel("second"), true)
busy:wait()
check.equal(busy.error.message, "cancelled: second")
-- An op that is cancelled while it waits for a task that a worker has.
local outer = flow.op("OuterOp", function() start():await() end):start()
wait_until_ready()
outer:cancel("third")
outer:wait()
check.equal(reason(), "false cancelled cancelled: third nil")

-- Members of a group, which workers execute in shares.
local ShareOp = flow.op("ShareOp", {
  needs = { name = "string" }, thread = "worker",
  run = function() flow.sleep(1000) end,
})
run = flow.op("OuterOp", function()
  flow.new("group"):data { names = { "a", "b", "c" } }:add_grouped(ShareOp, { input = "names" }):start()
  flow.sleep(0.05)
  local _, e = pcall(function() flow.cancelled("group"):await() end)
  e.note = { text = "why" }
  error(e)
end):run()
check.equal(run.state, "cancelled")
check.equal(run.error.note.text, "why")
-- A timeout around, long enough for a worker to begin.
local seconds = 0.05
while true do
  run = flow.op("OuterOp", { timeout = seconds, run = function() start() flow.sleep(1000) end }):run()
  check.equal(run.error.kind, "timeout")
  if os.remove(ready) then break end
  seconds = 2 * seconds
  assert(seconds < 60)
end
check.equal(reason(), ("false cancelled cancelled: timed out after %gs nil"):format(seconds))
-- The workers are as good as before.
check.equal(flow.resolved(1):next(function(t) return t.result + 1 end, { thread = "worker" }):await(), 2)
os.remove(name)
