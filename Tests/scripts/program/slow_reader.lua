-- A program that prints faster than its reader reads waits: the memory stays bounded.
local flow, check = require "flow", require "check"

local function resident()
  local file <close> = assert(io.open "/proc/self/statm")
  return tonumber(file:read("a"):match "^%d+ (%d+)") * 4096
end

-- A hundred megabytes in lines of 10,000 bytes, for a reader that sleeps now and then.
local program = flow.exec {
  "sh", "-c", "yes \"$0\" | head -c 100000000", ("x"):rep(9999) }
local count, most = 0, 0
local before
for line in program:lines() do
  count = count + 1
  if count % 500 == 1 then
    before = before or resident()
    assert(#line == 9999)
    flow.sleep(0.001)
    most = math.max(most, resident() - before)
  end
end
check.equal(count, 10000)
check.equal(program:await().stdout, "")
-- A sanitizer keeps freed memory for a while.
assert(most < 40 << 20 or os.getenv "FLOWLUA_SANITIZER", most)

-- The reader may sleep on a virtual clock too: a program that waits for it doesn't hold the clock.
program = flow.exec { "sh", "-c", "yes | head -c 400000" }
local size = 0
for line in program:lines() do
  size = size + #line + 1
  if size == 2 then flow.sleep(1000) end
end
check.equal(size, 400000)

-- A reader that was forgotten doesn't keep the program from ending.
program = flow.exec { "sh", "-c", "yes | head -c 400000" }
local iterator = program:lines()
check.equal(iterator(), "y")
program:await()
check.equal(iterator(), "y")
-- Nor one that writes what the program doesn't read.
program = flow.exec({ "sh", "-c", "yes | head -c 400000; cat" }, { stdin = "pipe" })
for line in program:lines() do
  if line == "y" and iterator then
    iterator = nil
    program:write(("z"):rep(1000000), "\nend\n")
    program:close_stdin()
  end
  size = size + 1
end
check.equal(size, 400000 + 200000 + 2)
program:await()

-- A cancel ends one whose output nobody takes.
program = flow.exec { "yes" }
iterator = program:lines()
iterator()
flow.sleep(0.001)
program:cancel "enough"
program:wait()
check.equal(program.error.message, "cancelled: enough")
check.equal(program.signal, 15)
check.equal(iterator(), "y")

-- A program doesn't wait for a reader that itself waits for the program, even if a timer is pending: for
-- its end, alone or with others, or until it has read its input.
local waits = {
  await = function(waited) waited:await() end,
  wait = function(waited) assert(waited:wait(500)) end,
  all = function(waited) flow.when_all_succeed({ waited, flow.exec { "true" } }):await() end,
}
for name, wait in pairs(waits) do
  local settled = flow.op("AwaitOp", {
    timeout = 1000,
    run = function()
      -- Once with much that waits for the reader, once with a line.
      for _, bytes in ipairs { 400000, 4 } do
        local lines = flow.exec { "sh", "-c", "yes | head -c " .. bytes }
        local next_line = lines:lines()
        check.equal(next_line(), "y")
        wait(lines)
        local rest = 0
        for line in next_line do rest = rest + #line + 1 end
        check.equal(rest, bytes - 2)
      end
    end,
  }):run()
  assert(settled.ok, name .. ": " .. tostring(settled.error))
end
local settled = flow.op("WriteOp", {
  timeout = 1000,
  run = function()
    local cat = flow.exec({ "cat" }, { stdin = "pipe" })
    local next_line = cat:lines()
    for _ = 1, 5 do cat:write((("z"):rep(99) .. "\n"):rep(10000)) end
    cat:close_stdin()
    local total = 0
    for line in next_line do total = total + #line + 1 end
    check.equal(total, 5000000)
    cat:await()
  end,
}):run()
assert(settled.ok, settled.error)
-- After a wait that has ended before the program, the bound counts again.
program = flow.exec { "sh", "-c", "sleep 0.01; yes" }
iterator = program:lines()
assert(not program:wait(0))
iterator()
before = resident()
flow.sleep(1)
assert(resident() - before < 40 << 20)
program:cancel()
program:wait()
