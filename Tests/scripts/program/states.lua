-- A program with readers and writers ends in every state: cancelled, killed, outlived by a child.
-- clock: real: the virtual clock stands still while a program runs
local flow, check = require "flow", require "check"

-- Leaves the loop at once.
local function first_line(program)
  for line in program:lines() do if line then return line end end
end
local function shell(text, options) return flow.exec({ "sh", "-c", text }, options) end
local function descriptors()
  local count = 0
  for _ in io.popen("ls /proc/$PPID/fd"):lines() do count = count + 1 end
  return count
end

flow.exec({ "true" }):await()
shell("cat", { stdin = "pipe" }):cancel()
collectgarbage()
local before = descriptors()

-- Cancelled while a loop waits for a line: the loop ends, with what was printed on the way out.
local program = shell("trap 'echo bye; exit 1' TERM; echo hello; read -r line", { stdin = "pipe" })
local seen = {}
for line in program:lines() do
  seen[#seen + 1] = line
  if line == "hello" then program:cancel "enough" end
end
check.equal(table.concat(seen, " "), "hello bye")
check.equal(check.raises(function() program:await() end).message, "cancelled: enough")

-- Cancelled before its first line, and before its start is reported.
program = shell "sleep 100"
local iterator = program:lines()
program:cancel()
check.equal(iterator(), nil)
program:wait()
check.equal(program.state, "cancelled")

-- The reader is cancelled; the program continues.
program = shell("read -r line; echo $line", { stdin = "pipe" })
local reading = flow.spawn(function() for _ in program:lines() do error "never" end end)
flow.sleep(0)
reading:cancel()
reading:wait()
program:write "still here\n"
check.equal(program:await().stdout, "still here\n")

-- An op ends: its program is stopped, and its loop with it.
local ReadOp = flow.op("ReadOp", { timeout = 1, run = function(ctx)
  local closed <close> = setmetatable({}, { __close = function() ctx:set("closed", true) end })
  assert(closed)
  for line in shell("echo line; echo problem >&2; exec sleep 100"):lines() do ctx:set("line", line) end
end })
local run = ReadOp:run()
check.equal(run.error.kind, "timeout")
check.equal(run.data.closed, true)
-- A timeout of the program carries what it printed.
program = shell("echo out; echo problem >&2; exec sleep 100", { timeout = 1 })
for line, stream in program:lines() do if stream == "stdout" then check.equal(line, "out") break end end
local e = check.raises(function() program:await() end)
check.equal(e.kind, "timeout")
check.contains(e.message, ": problem")

-- Killed from outside.
program = shell("echo started; exec sleep 100")
for _ in program:lines() do flow.exec({ "kill", "-9", program.pid }):await() end
check.equal(check.raises(function() program:await() end).signal, 9)

-- A child of it keeps the pipe open: the lines end when it does; a cancel doesn't wait for it.
program = shell "(echo late; sleep 0.05; echo later) & echo early"
seen = {}
for line in program:lines() do seen[line] = true end
assert(seen.early and seen.late and seen.later)
program = shell "(trap '' TERM; sleep 100) & echo early; exec sleep 100"
first_line(program)
program:cancel()
program:wait()
check.equal(program.signal, 15)

-- Two hundred at once, each with a reader and a writer.
local tasks = {}
for i = 1, 200 do
  tasks[i] = flow.spawn(function()
    local cat = flow.exec({ "cat" }, { stdin = "pipe" })
    cat:write(i, "\n", i, "\n")
    local sum = 0
    for line in cat:lines() do
      sum = sum + line
      if sum == 2 * i then cat:close_stdin() end
    end
    cat:await()
    return sum
  end)
end
for i, task in ipairs(tasks) do check.equal(task:await(), 2 * i) end

-- In workers, whose programs end with them.
local WorkOp = flow.op("WorkOp", { thread = "worker", needs = { n = "integer" }, gives = { text = "string" },
  run = function(ctx)
    local flow <const> = require "flow"
    local cat = flow.exec({ "cat" }, { stdin = "pipe" })
    cat:write("worker ", ctx:get "n", "\n")
    cat:close_stdin()
    for line in cat:lines() do ctx:set("text", line) end
  end })
run = flow.new("work"):data { ns = { 1, 2, 3 } }
  :add_grouped(WorkOp, { input = "ns", output = "texts" }):run()
check.equal(table.concat(run.data.texts, "|"), "worker 1|worker 2|worker 3")

tasks, program, iterator, reading, run = nil, nil, nil, nil, nil
collectgarbage()
-- Workers keep their descriptors.
assert(descriptors() <= before + 16, descriptors() - before)
