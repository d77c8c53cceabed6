-- A lock that the code holds already is refused, another op's is awaited, and a circle of locks is stalled.
local flow, check, host = require "flow", require "check", require "host"
local fs = flow.fs

local dir = fs.temp_dir()
local path, other = dir .. "/a", dir .. "/b"

-- By any name of the file, in the main chunk, a task and an op.
local function twice()
  local mine <close> = fs.lock(path)
  local err = check.raises(function() fs.lock(path) end, "can't lock '" .. path .. "': this code holds it already")
  check.equal(err.name, "EDEADLK")
  check.raises(function() fs.lock(dir .. "/./a") end, "this code holds it already")
end
twice()
flow.spawn(twice):await()
flow.op("TwiceOp", twice):run():await()
fs.lock(path):close()

-- Others wait, one after another, while time passes.
local order = {}
local LockOp = flow.op("LockOp", function(ctx)
  local mine <close> = fs.lock(path)
  flow.sleep(60)
  order[#order + 1] = ctx:get "n"
end)
local start = flow.now()
flow.new("locks"):add_grouped(LockOp, { input = "ns", as = "n", max_concurrent = 3 }):run { ns = { 1, 2, 3 } }:await()
check.equal(#order, 3)
check.equal(flow.now() - start >= 180, true)

-- One that is stopped waits no more.
local mine = fs.lock(path)
check.raises(function() flow.within(1, function() fs.lock(path) end) end, "timed out")
local stopped = flow.spawn(fs.lock, path)
flow.sleep(1)
stopped:cancel()
check.equal(stopped:wait(10), true)
local waiting = flow.spawn(fs.lock, path)
flow.sleep(1)
mine:close()
waiting:await():close()

-- Each of two waits for the other one.
local function both(first, second)
  return flow.op("BothOp", function()
    local one <close> = fs.lock(first)
    flow.sleep(1)
    local two <close> = fs.lock(second)
  end):start()
end
local runs = { both(path, other), both(other, path) }
flow.when_all_finish(runs):await()
local failed = {}
for _, run in ipairs(runs) do failed[#failed + 1] = run.error and run.error.kind end
check.same(failed, { "stalled" })
local LockedOp = flow.op("LockedOp", function() fs.lock(path) end)
local OuterOp = flow.op("OuterOp", function()
  local one <close> = fs.lock(path)
  LockedOp:run():await()
end)
check.equal(OuterOp:run().error.kind, "stalled")

-- So it is when another process had the lock first, for which both waited.
local holder = flow.exec { host.binary, "-e", ([[
  local flow = require "flow"
  flow.fs.lock(%q)
  print "locked" io.stdout:flush()
  flow.sleep(0.3)]]):format(path) }
check.equal(holder:lines()(), "locked")
order, start = {}, flow.now()
local first, second = LockOp:start { n = 1 }, LockOp:start { n = 2 }
flow.when_all_succeed { first, second }:await()
holder:wait()
check.same(order, { 1, 2 })
check.equal(flow.now() - start >= 120, true)

-- The callbacks of each run are code of its own.
order = {}
local function finishing(name)
  return flow.new(name):add(flow.op("NoneOp", function() end)):did_finish(function()
    local one <close> = fs.lock(path)
    flow.sleep(60)
    order[#order + 1] = name
  end):start()
end
finishing "one"
finishing "two"
flow.sleep(1)
fs.lock(path):close()
flow.sleep(200)
check.same(order, { "one", "two" })

-- Many that are stopped at once.
mine = fs.lock(path)
local many = {}
for n = 1, 10000 do many[n] = flow.spawn(fs.lock, path) end
flow.sleep(0)
for _, task in ipairs(many) do task:cancel() end
check.equal(many[#many]:wait(10), true)
waiting = flow.spawn(fs.lock, path)
flow.sleep(1)
mine:close()
waiting:await():close()
for n = 1, 100 do many[n] = flow.spawn(fs.lock, other) end
flow.sleep(0)
for n = 1, 100 do many[n]:cancel() end
fs.lock(other, { wait = false }):close()

-- One that doesn't wait is refused while others wait.
mine = fs.lock(path)
waiting = flow.spawn(fs.lock, path)
flow.sleep(1)
check.equal(check.raises(function() fs.lock(path, { wait = false }) end, "holds it already").name, "EAGAIN")
check.equal(waiting.state, "pending")
mine:close()
waiting:await():close()
