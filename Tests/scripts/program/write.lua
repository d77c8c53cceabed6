-- A script writes to a program while it runs, and learns when the program doesn't read.
local flow, check = require "flow", require "check"

-- Leaves the loop at once.
local function first_line(program)
  for line in program:lines() do if line then return line end end
end
local function shell(text, options)
  options = options or {}
  options.stdin = options.stdin or "pipe"
  return flow.exec({ "sh", "-c", text }, options)
end

local program = flow.exec({ "cat" }, { stdin = "pipe" })
assert(rawequal(program:write("a", 1, "\0", 0.5), program))
program:write():write "":write "\255"
assert(math.type(program.pid) == "integer")
program:close_stdin()
program:close_stdin()
check.equal(program:await().stdout, "a1\0000.5\255")
check.usage(function() program:write "x" end, "close_stdin was called")

-- More than a pipe holds: the writer waits, and other code reads.
local size = 20 << 20
program = flow.exec({ "cat" }, { stdin = "pipe" })
local other = 0
local ticking = flow.spawn(function() while true do flow.sleep(0) other = other + 1 end end)
local chunk = ("0123456789abcdef"):rep(4096)
for _ = 1, size // #chunk do program:write(chunk) end
program:close_stdin()
check.equal(#program:await().stdout, size)
assert(other > 0)
ticking:cancel()

-- One that closes its input early, or ends.
local function fails(write)
  local e = check.raises(write)
  check.equal(e.kind, "error")
  check.equal(e.name, "EPIPE")
  check.equal(e.code, 32)
  check.contains(e.message, "write.lua:", "can't write to '", "': it has closed its input")
end
program = shell "exec <&-; echo closed; sleep 100"
check.equal(first_line(program), "closed")
fails(function() program:write "x" end)
fails(function() program:write "x" end)
program:cancel()
program:wait()
fails(function() program:write "x" end)
program = shell "read -r line; exec <&-; sleep 100"
fails(function() program:write("line\n", ("x"):rep(1 << 20)) end)
program:cancel()
program = shell "exit 0"
program:wait()
fails(function() program:write "x" end)
program = flow.exec({ "no-such-program" }, { stdin = "pipe" })
program:wait()
check.equal(program.error.kind, "error")
fails(function() program:write "x" end)
check.equal(program.pid, nil)

-- One that never reads: the write waits, and ends with its task.
program = shell "sleep 100"
local writing = flow.spawn(function() program:write(("x"):rep(1 << 20)) end)
flow.spawn(function() flow.sleep(0) writing:cancel "stop" end)
writing:wait()
check.equal(writing.error.message, "cancelled: stop")
program:cancel()
program:wait()
-- The end of the program ends the write.
program = shell "echo started; exec sleep 100"
writing = flow.spawn(function() program:write(("x"):rep(1 << 20)) end)
first_line(program)
assert(os.execute("kill -9 " .. program.pid))
writing:wait()
check.equal(writing.error.name, "EPIPE")
program:wait()
check.equal(program.error.signal, 9)

-- Its input ends with the script's interest in it at the latest.
local WriteOp = flow.op("WriteOp", function(ctx)
  local cat = flow.exec({ "cat" }, { stdin = "pipe" })
  cat:write "left"
  ctx:set("pid", cat.pid)
end)
local run = WriteOp:run()
check.equal(run.ok, true)
local kill = flow.exec({ "kill", "-0", run.data.pid }, { check = false })
check.equal(kill:await().status, 1)

-- Wrong use.
for _, name in ipairs { "write", "close_stdin" } do
  local without = flow.exec { "true" }
  check.usage(function() without[name](without, "x") end, name, "stdin = \"pipe\"")
  check.usage(function() without[name](1) end, name, "task of flow.exec")
  without:wait()
end
program = shell "cat"
check.usage(function() program:write {} end, "#1 to 'write'", "string expected")
check.usage(function() program:write("a", nil) end, "#2 to 'write'", "string expected")
program:close_stdin()
program:wait()
check.equal(program.stdout, "")
