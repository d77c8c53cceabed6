-- Memory that many waits at the same time have taken is collected, and small blocks that are released go back to the system.
local flow, check = require "flow", require "check"
local function resident()
  local file <close> = assert(io.open("/proc/self/statm"))
  local _, pages = file:read("n", "n")
  return pages * 4096
end

-- A coroutine is collected only when it isn't kept for what comes next.
local coroutines = setmetatable({}, { __mode = "k" })
local SleepyOp = flow.op("SleepyOp", function()
  coroutines[coroutine.running()] = true
  flow.sleep(1)
end)
local function kept(count)
  local list = {}
  for i = 1, count do list[i] = i end
  local run = flow.new("sleepers"):data { list = list }
    :add_grouped(SleepyOp:with { primary_input = "item" }, { input = "list", max_concurrent = count }):run()
  assert(run.ok, run.error)
  collectgarbage()
  local number = 0
  for _ in pairs(coroutines) do number = number + 1 end
  return number
end
check.equal(kept(100), 100)
for _, count in ipairs { 5000, 5000, 100 } do
  local number = kept(count)
  assert(number > 1000 and number <= 1024, number)
end

-- Blocks come and go by the million, and most of their memory is given back when they are gone.
local function fill()
  local tables = {}
  for i = 1, 300000 do tables[i] = { i, x = i } end
  return tables, resident()
end
for _ = 1, 3 do
  collectgarbage()
  local before = resident()
  local tables, full = fill()
  assert(#tables == 300000)
  tables = nil
  collectgarbage()
  -- The pool keeps 8 MiB, and Lua's list of the tables is a block of its own. A sanitizer keeps what is freed.
  local left = resident() - before
  assert(os.getenv "FLOWLUA_SANITIZER" or left < 16 << 20 and left < (full - before) // 2, left)
end
