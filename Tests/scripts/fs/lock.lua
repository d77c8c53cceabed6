-- `flow.fs.lock` locks a file for one code at a time, in all processes, and the error names the process that has it.
-- clock: real: other processes hold locks
local flow, check, host = require "flow", require "check", require "host"
local fs = flow.fs

local dir = fs.temp_dir()
local path = dir .. "/a lock\nwith \xff bytes"

-- One at a time; `close`, `<close>` and the end of an op release it.
local lock = fs.lock(path)
check.equal(fs.exists(path), true)
check.equal(tostring(lock), "lock: " .. path)
local pid = io.open("/proc/self/stat"):read "n"
local err = check.raises(function() fs.lock(path, { wait = false }) end,
  "can't lock '" .. path .. "': this process, " .. pid .. ", holds it already")
check.equal(err.name, "EAGAIN")
local order = {}
local waiting = flow.spawn(function()
  local mine <close> = fs.lock(path)
  order[#order + 1] = "locked"
  return tostring(mine)
end)
-- The loop runs on meanwhile.
flow.sleep(0.02)
check.equal(waiting.state, "pending")
order[#order + 1] = "released"
lock:close()
lock:close()
check.equal(tostring(lock), "lock: " .. path .. " (closed)")
check.equal(waiting:await(), "lock: " .. path)
check.same(order, { "released", "locked" })
local LockOp = flow.op("LockOp", function() fs.lock(path) collectgarbage() collectgarbage() end)
LockOp:run():await()
fs.lock(path, { wait = false }):close()
local FailOp = flow.op("FailOp", function(ctx) fs.lock(path) ctx:fail "on purpose" end)
check.equal(FailOp:run().error.message, "on purpose")
fs.lock(path, { wait = false }):close()

-- So do the ends of items, of steps and of tasks, while their run continues.
local held = 0
local ItemOp = flow.op("ItemOp", function() fs.lock(path) held = held + 1 end)
local run = flow.new("items"):add_grouped(ItemOp, { input = "ns", as = "n", max_concurrent = 2 }):add(ItemOp)
  :add(flow.op("TaskOp", function()
    for _ = 1, 2 do flow.spawn(fs.lock, path):await() held = held + 1 end
  end)):run { ns = { 1, 2, 3 } }
check.equal(run.ok, true)
check.equal(held, 6)
fs.lock(path, { wait = false }):close()

-- A lock that is dropped outside of ops stays until the script ends.
do fs.lock(dir .. "/dropped") end
collectgarbage() collectgarbage()
check.raises(function() fs.lock(dir .. "/dropped", { wait = false }) end, "holds it already")

-- Another process: its number, and its end releases the lock, also when it is killed.
local holder = flow.exec({ host.binary, "-e", [[
  local fs = require "flow".fs
  fs.lock(]] .. ("%q"):format(path):gsub("\n", "n") .. [[)
  print "locked" io.stdout:flush()
  require "flow".sleep(1000)]] }, { check = false })
check.equal(holder:lines()(), "locked")
check.raises(function() fs.lock(path, { wait = false }) end, "': process " .. holder.pid .. " holds it")
local late = check.raises(function() flow.within(0.02, function() fs.lock(path) end) end, "timed out")
check.contains(late.place, "in lock")
local cancelled = flow.spawn(fs.lock, path)
cancelled:cancel()
check.equal(cancelled:wait(10), true)
waiting = flow.spawn(fs.lock, path)
flow.exec { "kill", "-KILL", tostring(holder.pid) }:await()
waiting:await():close()
holder:wait()

-- More waits at a time than there are threads for files, which stay free.
lock = fs.lock(path)
local tasks = {}
for k = 1, 12 do
  tasks[k] = flow.spawn(function()
    local mine <close> = fs.lock(path)
    fs.write(dir .. "/" .. k, "x")
  end)
end
fs.write(dir .. "/free", "x")
lock:close()
flow.when_all_succeed(tasks):await()

-- A file that is removed is another one afterwards; a folder has no lock.
check.raises(function() fs.lock(dir) end, "Is a directory")
fs.write(dir .. "/removed", "")
lock = fs.lock(dir .. "/removed")
fs.remove(dir .. "/removed")
fs.lock(dir .. "/removed", { wait = false }):close()
lock:close()

-- Misuse.
check.usage(function() fs.lock() end, "lock", "#1", "path expected, got no value")
check.usage(function() fs.lock "" end, "lock", "#1", "path expected, got an empty string")
check.usage(function() fs.lock "a\0b" end, "lock", "#1", "NUL")
check.usage(function() fs.lock(path, { wait = 1 }) end, "lock", "#2", "field 'wait': boolean expected, got number")
check.usage(function() fs.lock(path, { waits = true }) end, "lock", "unknown field 'waits'", "'wait'")
check.usage(function() lock.close() end, "close", "lock expected, got no value")
err = check.raises(function() fs.lock(dir .. "/none/file") end, "can't lock '" .. dir .. "/none/file': No such file")
check.equal(err.name, "ENOENT")
