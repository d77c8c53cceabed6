-- A cancelled function ends at once, and removes the files that it has begun.
-- clock: real: a limit for the end of a cancelled function on another thread
local check = require "check"
local flow = require "flow"
local fs = flow.fs

local dir = fs.temp_dir()
local pipe = dir .. "/pipe"
flow.exec { "mkfifo", pipe }:await()

-- Functions that never end by themselves: nobody writes to the pipe.
local endless = {
  function() fs.read(pipe) end,
  function() fs.hash(pipe) end,
  function() fs.copy(pipe, dir .. "/copy") end,
}
local function is_clean()
  local limit = flow.now() + 10
  repeat
    if #fs.list(dir, { hidden = true }) == 1 then return true end
    flow.sleep(0.001)
  until flow.now() > limit
  return false
end
for _, start in ipairs(endless) do
  local task = flow.spawn(start)
  flow.sleep(0.02)
  check.equal(task.state, "pending")
  task:cancel "enough"
  task:wait(10)
  check.equal(task.state, "cancelled")
  check.equal(task.error.message, "cancelled: enough")
end
check.equal(is_clean(), true, "the copy is removed")

-- A timeout and the end of a group stop it, too.
local HashOp = flow.op("HashOp", { timeout = 0.02, run = function() fs.hash(pipe) end })
local run = HashOp:run()
check.equal(run.error.kind, "timeout")
check.contains(tostring(run.error), "cancel.lua:", "in hash")
local WorkerOp = flow.op("WorkerOp", {
  thread = "worker", timeout = 0.1, run = function() require "flow".fs.copy(pipe, dir .. "/copy") end,
})
check.equal(WorkerOp:run().error.kind, "timeout")
check.equal(is_clean(), true, "the worker's copy is removed")
local FailOp = flow.op("FailOp", function(ctx)
  flow.sleep(0.01)
  ctx:fail "on purpose"
end)
local ReadOp = flow.op("ReadOp", function() fs.read(pipe) end)
check.equal(flow.new("both"):add_parallel(ReadOp, FailOp):run().error.message, "on purpose")

-- Threads are free again.
fs.write(dir .. "/file", "x")
check.equal(fs.read(dir .. "/file"), "x")
fs.remove(dir .. "/file")

-- A tree whose removal or listing is stopped somewhere in the middle.
for i = 1, 20 do
  fs.mkdir(dir .. "/tree/" .. i)
  for k = 1, 20 do fs.write(("%s/tree/%d/%d"):format(dir, i, k), "", { append = true }) end
end
for _, start in ipairs {
  function() fs.list(dir .. "/tree", { recursive = true }) end,
  function() fs.remove(dir .. "/tree", { recursive = true }) end,
} do
  local task = flow.spawn(start)
  task:cancel()
  task:wait(10)
  check.equal(task.state, "cancelled")
end
