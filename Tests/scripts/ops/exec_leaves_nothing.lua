-- However programs end, they leave no descriptor and no zombie.
-- clock: real: the virtual clock stands still while a program runs
local flow, check = require "flow", require "check"

-- How many descriptors are open. Looked up one by one: a program that lists them runs beside
-- flowlua, which still opens and closes its pipes meanwhile.
local function descriptors()
  local count = 0
  for number = 0, 1023 do
    local file <close> = io.open("/proc/self/fdinfo/" .. number)
    if file then count = count + 1 end
  end
  return count
end
local function zombies()
  local list <close> = io.popen(
    "for p in $(cat /proc/$PPID/task/*/children); do grep '^State:.Z' /proc/$p/status; done")
  return select(2, list:read("a"):gsub("\n", ""))
end

local function round(size)
  local tasks = {}
  local function start(...) tasks[#tasks + 1] = flow.exec(...) end
  for i = 1, size do
    start { "true" }
    start({ "cat" }, { stdin = ("x"):rep(i * 1000) })
    start({ "true" }, { stdin = ("x"):rep(200000) })
    start { "no-such-program" }
    start({ "no-such-program" }, { stdin = "x" })
    start({ "true" }, { cwd = "/no/such" })
    start { "sh", "-c", "kill -9 $$" }
    start({ "sh", "-c", "sleep 0.001 &" }, { capture = false })
    start({ "sleep", "100" }, { timeout = 0.001 })
    start({ "sh", "-c", "sleep 100 & sleep 100" }, { stdin = "x" })
    tasks[#tasks]:cancel()
    pcall(start, { "a\0b" })
  end
  for _, task in ipairs(tasks) do
    task:wait()
    assert(task.state ~= "pending")
  end
end
round(1)
local before = descriptors()
for _ = 1, 5 do round(10) end
check.equal(descriptors(), before)
check.equal(zombies(), 0)
-- The count sees what there is.
local unclosed <close> = io.popen("exit 0")
unclosed:read("a")
while zombies() == 0 do flow.sleep(0.001) end
check.equal(descriptors(), before + 1)
