-- A coverage tool such as luacov counts the lines of ops, spawned functions and callbacks.
-- It sets a line hook on the main coroutine, and one on each that the script makes.
local flow = require "flow"
local check = require "check"
local counts = {}
local function count(_, line)
  if debug.getinfo(2, "S").source == "=covered" then counts[line] = (counts[line] or 0) + 1 end
end
local create, wrap = coroutine.create, coroutine.wrap
local function start()
  debug.sethook(count, "l")
  coroutine.create = function(...) -- luacheck: ignore 122
    local co = create(...)
    debug.sethook(co, count, "l")
    return co
  end
  coroutine.wrap = function(...) -- luacheck: ignore 122
    local co = coroutine.create(...)
    return function(...) return select(2, assert(coroutine.resume(co, ...))) end
  end
end
local function stop()
  debug.sethook()
  coroutine.create, coroutine.wrap = create, wrap -- luacheck: ignore 122
end

local text = [[
local flow = ...
local function op(ctx)                                  -- 2
  local n = 0
  for i = 1, 3 do
    n = n + i                                           -- 5
  end
  flow.sleep(0.001)
  n = n + 1                                             -- 8
  if n > 100 then
    n = 0                                               -- 10
  end
  for v in coroutine.wrap(function()
    flow.sleep(0.001)                                   -- 13
    coroutine.yield(1)
  end) do
    n = n + v                                           -- 16
  end
  ctx:defer(function()
    n = n + 1                                           -- 19
  end)
end
local CountOp = flow.op("CountOp", op)
return function()                                       -- 23
  flow.new("f"):add(CountOp):add(CountOp)
    :did_finish(function()
      local _ = 1                                       -- 26
    end):run()
  flow.spawn(function()
    local _ = 1                                         -- 29
    flow.sleep(0.001)
    _ = 2                                               -- 31
  end):next(function()
    local _ = 1                                         -- 33
  end):await()
end
]]
local run = assert(load(text, "=covered"))(flow)
local covered = { [5] = 6, [8] = 2, [13] = 2, [14] = 2, [16] = 2, [19] = 2, [26] = 1, [29] = 1, [31] = 1, [33] = 1 }
local function expect(times)
  for line = 1, 40 do
    local expected = covered[line]
    if expected then check.equal(counts[line] or 0, expected * times, "line " .. line) end
  end
  check.equal(counts[10], nil, "line 10")
  counts = {}
end

-- Coroutines that were used before without a hook, with one, and without one again.
run()
expect(0)
start()
run()
expect(1)
run()
expect(1)
stop()
run()
expect(0)
start()
run()
expect(1)

-- Of an op that waits meanwhile: from when it is set, until it is removed.
stop()
local wait = assert(load([[
local flow, steps = ...
return flow.spawn(function()
  for i = 1, 4 do
    steps[i]:await()
    local _ = i                                         -- 5
  end
end)
]], "=covered"))
local contexts, steps = {}, {}
for i = 1, 4 do contexts[i] = flow.context() steps[i] = contexts[i].task end
local task = wait(flow, steps)
contexts[1]:set_result()
flow.sleep(0)
start()
contexts[2]:set_result()
flow.sleep(0)
contexts[3]:set_result()
flow.sleep(0)
stop()
contexts[4]:set_result()
task:await()
check.equal(counts[5], 2)

-- A hook that an op has set itself is its own, and goes with it.
counts = {}
local own = 0
start()
local OwnOp = flow.op("OwnOp", function()
  debug.sethook(function() own = own + 1 end, "", 1)
  flow.sleep(0.001)
  local hook = debug.gethook()
  assert(hook and hook ~= count)
end)
assert(OwnOp:run().ok)
assert(own > 0)
flow.op("GetOp", function() check.equal(debug.gethook(), count) end):run():await()
stop()
flow.op("GetOp", function() check.equal(debug.gethook(), nil) end):run():await()

-- An op with a hook is stopped like any other, and continues after Ctrl-C was asked for elsewhere.
start()
local busy = flow.op("BusyOp", { timeout = 0.02, run = function() while true do pcall(error) end end }):run()
check.equal(busy.error.kind, "timeout")
check.equal(debug.gethook(), count)
counts = {}
run()
expect(1)
