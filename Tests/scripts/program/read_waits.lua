-- While flow.read waits everything else continues; a cancelled one loses nothing.
-- clock: real: the virtual clock stands still while input is awaited
local flow, check, host = require "flow", require "check", require "host"

local function start(text)
  local name = os.tmpname()
  local file = assert(io.open(name, "wb"))
  file:write("local flow = require 'flow'\n", text)
  file:close()
  return flow.exec({ host.binary, name }, { stdin = "pipe" }), name
end

-- Ticks continue; the question is there before the answer.
local program, name = start [[
  io.write "name?\n"
  local ticks = 0
  local ticking = flow.spawn(function()
    while true do
      flow.sleep(0.001)
      ticks = ticks + 1
      if ticks == 1 then
        print "tick"
        io.stdout:flush()
      end
    end
  end)
  local line = flow.read()
  print(line, ticks > 0)
  ticking:cancel()
  -- Several wait: each gets a line, in order.
  local readers = {}
  for i = 1, 3 do readers[i] = flow.spawn(function() return i .. flow.read() end) end
  print "ready"
  io.stdout:flush()
  print(table.concat(flow.when_all_succeed(readers):await(), " "))
  -- A cancelled read leaves its part to the next one; io.read and flow.read continue there.
  local reading = flow.spawn(function() return flow.read("l", "l") end)
  print "half"
  io.stdout:flush()
  flow.sleep(0.05)
  reading:cancel "no patience"
  reading:wait()
  print(reading.error)
  print "next"
  io.stdout:flush()
  print(flow.read("l", "L", "l"))
  print(io.read "a")
  print(flow.read())
]]
local seen = {}
for line in program:lines() do
  seen[#seen + 1] = line
  if line == "tick" then program:write "Ada\n"
  elseif line == "ready" then
    program:write "a\nb"
    flow.sleep(0.005)
    program:write "\nc\n"
  elseif line == "half" then program:write "first\nsec"
  elseif line == "next" then
    program:write "ond\nthird\nrest\nof it"
    program:close_stdin()
  end
end
program:await()
os.remove(name)
check.equal(table.concat(seen, "|"),
  "name?|tick|Ada\ttrue|ready|1a 2b 3c|half|cancelled: no patience|next|first\tsecond|\tthird|rest|of it|nil")

-- An op's timeout ends it; a read that waits keeps the script from being stalled.
program, name = start [[
  local ReadOp = flow.op("ReadOp", { timeout = 0.01, run = function() flow.read() end })
  print(ReadOp:run().error.kind)
  -- Over before it waits.
  print(ReadOp:with({ timeout = 1e-6 }):run().error.kind)
  local ok, e = pcall(flow.read, "x")
  print(e.kind, (e.message:gsub("^.-:", "")))
  print(select(2, pcall(flow.read, -1)).message:match "number of bytes.*")
  print(select(2, pcall(flow.read, {})).message:match "#1 to 'read'.*")
  local WorkOp = flow.op("WorkOp", { thread = "worker", run = function() require "flow".read() end })
  print(WorkOp:run().error.message:match "flow.read isn't.*")
]]
local text = program:await().stdout
os.remove(name)
check.equal(text, [[
timeout
timeout
usage	6: bad argument #1 to 'read' ("l", "L", "n", "a" or a number of bytes expected, got 'x')
number of bytes expected, got -1)
#1 to 'read' (string expected, got table)
flow.read isn't there in a worker: the main script reads standard input
]])

-- On the virtual clock the time stands still meanwhile.
name = os.tmpname()
local file = assert(io.open(name, "wb"))
file:write [[
  local flow = require "flow"
  local begun = flow.now()
  local sleeping = flow.with_delay(1000)
  print(flow.read(), sleeping.completed)
  sleeping:await()
  print(flow.now() - begun)
]]
file:close()
program = flow.exec({ host.binary, "--virtual-clock", name }, { stdin = "pipe" })
flow.sleep(0.05)
program:write "late\n"
check.equal(program:await().stdout, "late\tfalse\n1000.0\n")
os.remove(name)

-- Bytes that have come for a read that was cancelled before it continued are for the next one.
program, name = start [[
  local second
  local reader = flow.spawn(function()
    local line = flow.read()
    second:cancel()
    return line
  end)
  second = flow.spawn(function() return flow.read() end)
  print "ready"
  io.stdout:flush()
  print(reader:await())
  second:wait()
  print(second.state, flow.read("l", "n", "l"))
]]
for line in program:lines() do
  if line == "ready" then program:write "1\n2\n3rest\n" break end
end
check.equal(program:await().stdout, "1\ncancelled\t2\t3\trest\n")
os.remove(name)

-- A session reads its input itself.
local session = host.run(host.binary, { "-i" }, { stdin = [[
print(pcall(require "flow".read))
print(pcall(require "flow".exec, { "cat" }, { stdin = "inherit" }))
]] })
check.contains(session.stdout, "bad use of 'read' (a session reads the standard input itself")
check.contains(session.stdout, "field 'stdin': the session reads the standard input itself")
