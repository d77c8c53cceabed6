-- Programs in tests are replaced by a function; one that isn't replaced is an error.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local host = require "host"

-- The op runs this program; the test replaces it.
local function run(exec, argv, options, op_options)
  local result
  local ProgramOp = flow.op("ProgramOp", {
    timeout = op_options and op_options.timeout, retry = op_options and op_options.retry,
    run = function() result = flow.exec(argv or { "curl", "-s" }, options):await() end,
  })
  local settled = testing.run(ProgramOp, { exec = exec })
  return settled, result
end

-- A string is the output; a table is the result; the function gets what was asked for.
local settled, result = run(function() return "hello\n" end)
assert(settled.ok, settled.error)
check.same(result, { status = 0, stdout = "hello\n", stderr = "" })
local seen
settled, result = run(function(argv, options)
  seen = { argv, options }
  return { stdout = "out\0", stderr = "err" }
end, { "git", "log", "a b" }, {
  stdin = "in", cwd = "/tmp", env = { A = "1", B = false }, timeout = 5, check = true,
})
assert(settled.ok, settled.error)
check.same(result, { status = 0, stdout = "out\0", stderr = "err" })
check.same(seen[1], { "git", "log", "a b" })
check.same(seen[2],
  { stdin = "in", cwd = "/tmp", env = { A = "1", B = false }, timeout = 5.0, capture = true })
settled, result = run(function() return {} end, { "true" }, { capture = false })
assert(settled.ok, settled.error)
check.same(result, { status = 0 })

-- Output that isn't captured goes to this process's, as it does with a real program.
local name = os.tmpname()
local file <close> = assert(io.open(name, "wb"))
file:write [[
  local flow, testing = require "flow", require "flow.testing"
  io.write "before\n"
  local settled = testing.run(flow.op("ProgramOp", function()
    local result = flow.exec({ "tool" }, { capture = false }):await()
    assert(result.stdout == nil and result.stderr == nil)
  end), { exec = function() return { stdout = "out\n", stderr = "err" } end })
  assert(settled.ok, settled.error)
  io.write "after\n"
]]
file:close()
local printed = host.run(host.binary, { name })
os.remove(name)
check.equal(printed.stdout, "before\nout\nafter\n")
check.equal(printed.stderr, "err")

-- A status other than 0 is a failure, unless it isn't checked; the error is a program's.
local function failing() return { status = 3, stdout = "some", stderr = "first\nno route\n" } end
settled = run(failing)
check.equal(settled.error.message, "curl -s exited with status 3: no route")
check.equal(settled.error.code, 3)
check.equal(settled.error.stdout, "some")
settled, result = run(failing, nil, { check = false })
assert(settled.ok, settled.error)
check.equal(result.status, 3)

-- It may wait, fail, and be called again by a retry. The clock is the test's.
local calls = 0
settled, result = run(function(argv)
  calls = calls + 1
  flow.sleep(600)
  if calls < 3 then error(argv[1] .. " is tired", 0) end
  return tostring(calls)
end, nil, nil, { retry = { attempts = 3, delay = 60 } })
assert(settled.ok, settled.error)
check.equal(result.stdout, "3")
check.equal(settled.duration, 3 * 600 + 2 * 60.0)
check.contains(settled:summary(), "[ProgramOp] Retry 2/3 in 60s: curl is tired")
local failure = { code = 7 }
settled = run(function() error(failure) end)
assert(rawequal(settled.error.cause, failure))
check.equal(settled.error.code, 7)
settled = run(function() return flow.with_delay(5, "later") end)
assert(settled.ok, settled.error)
check.equal(settled.duration, 5.0)

-- Limits and cancels end it. The limit of a program counts on the test's clock.
local closed = {}
local function endless(argv)
  local close <close> = setmetatable({}, { __close = function() closed[#closed + 1] = argv[1] end })
  while close do flow.sleep(3600) end
end
settled = run(endless, { "slow" }, { timeout = 90 })
check.equal(settled.error.kind, "timeout")
check.equal(settled.error.message, "timed out after 90s")
check.equal(settled.duration, 90.0)
settled = run(endless, { "slower" }, nil, { timeout = 30 })
check.equal(settled.error.kind, "timeout")
check.equal(settled.duration, 30.0)
local left
assert(testing.run(flow.op("LeaveOp", function() left = flow.exec { "left" } end), { exec = endless }).ok)
check.equal(left.state, "cancelled")
local task
settled = testing.run(flow.op("CancelOp", function()
  task = flow.exec { "cancelled" }
  flow.sleep(1)
  task:cancel "enough"
  task:wait()
end), { exec = endless })
assert(settled.ok, settled.error)
check.equal(task.error.message, "cancelled: enough")
check.same(closed, { "slow", "slower", "left", "cancelled" })
settled = run(function() flow.context().task:await() end)
check.equal(settled.error.kind, "stalled")

-- Its output goes where it goes with any program: to readers of lines, to a file.
local lines = {}
settled = testing.run(flow.op("LinesOp", function()
  local program = flow.exec { "list" }
  for line, stream in program:lines() do lines[#lines + 1] = stream .. " " .. line end
  lines[#lines + 1] = program:await().stdout .. "."
  check.equal(program.pid, nil)
end), { exec = function() flow.sleep(1) return { stdout = "a\n\nb", stderr = "c\n" } end })
assert(settled.ok, settled.error)
check.same(lines, { "stdout a", "stdout ", "stdout b", "stderr c", "." })
settled = testing.run(flow.op("LeftOp", function(ctx)
  local program = flow.exec { "list" }
  for _ in program:lines() do break end  -- luacheck: ignore
  ctx:set("rest", program:await().stdout)
end), { exec = function() return "a\nb\nc\n" end })
assert(settled.ok, settled.error)
check.equal(settled.data.rest, "b\nc\n")
local path = os.tmpname()
settled, result = run(function(_, options)
  check.equal(options.output, path)
  return { stdout = "into it", stderr = "beside it" }
end, nil, { output = path })
assert(settled.ok, settled.error)
check.same(result, { status = 0, stderr = "beside it" })
local file <close> = assert(io.open(path))
check.equal(file:read "a", "into it")
os.remove(path)
settled = run(function() return "" end, nil, { output = "/no such folder/file" })
check.contains(settled.error.message, "/no such folder/file")

-- Its input is known as a whole: one that is written in parts, when it was closed.
local inputs = {}
local function keep(_, options)
  inputs[#inputs + 1] = options.stdin or "nothing"
  return "done"
end
settled = testing.run(flow.op("WriteOp", function(ctx)
  local program = flow.exec({ "sort" }, { stdin = "pipe" })
  for i = 1, 3 do program:write(("line %d\n"):format(i), ("x"):rep(100000), "\n") end
  flow.sleep(1)
  program:close_stdin()
  ctx:set("out", program:await().stdout)
  flow.exec({ "sort" }, { stdin = { bytes = "inherit" } }):await()
  flow.exec({ "sort" }, { stdin = "inherit" }):await()
  flow.exec({ "sort" }, { stdin = { file = "names.txt" } }):await()
  flow.exec({ "sort" }):await()
  local never = flow.exec({ "sort" }, { stdin = "pipe" })
  flow.sleep(1)
  never:cancel()
  never:wait()
end), { exec = keep })
assert(settled.ok, settled.error)
check.equal(settled.data.out, "done")
check.equal(#inputs[1], 3 * (7 + 100000 + 1))
check.equal(inputs[2], "inherit")
check.equal(inputs[3], "inherit")
check.same(inputs[4], { file = "names.txt" })
check.equal(inputs[5], "nothing")
check.equal(#inputs, 5)

-- ExecOp, in a group, several at once.
local most, now = 0, 0
local function counted(argv)
  now = now + 1
  most = math.max(most, now)
  flow.sleep(1)
  now = now - 1
  return argv[2]
end
settled = testing.run(flow.ops.ExecOp { "echo", "a" }, { exec = counted })
assert(settled.ok, settled.error)
check.equal(settled.data.stdout, "a")
local EchoOp = flow.op("EchoOp", { needs = { n = "integer" }, gives = { out = "string" },
  run = function(ctx) ctx:set("out", flow.exec({ "echo", tostring(ctx:get "n") }):await().stdout) end })
settled = testing.run(
  flow.new("all"):add_grouped(EchoOp, { input = "ns", output = "outs", max_concurrent = 4 }),
  { data = { ns = { 1, 2, 3, 4, 5 } }, exec = counted })
assert(settled.ok, settled.error)
check.equal(table.concat(settled.data.outs, " "), "1 2 3 4 5")
check.equal(most, 4)
check.equal(settled.duration, 2.0)

-- A program that isn't replaced is an error that names the line, the program and the option.
settled = run(nil)
check.equal(settled.error.kind, "usage")
check.contains(settled.error.message, "programs.lua:10: program 'curl' isn't replaced in this test: ",
  "exec = \"real\"", "testing.run")
settled = testing.run(flow.ops.ExecOp { "make" })
check.equal(settled.error.kind, "usage")
check.contains(settled.error.message, "program 'make' isn't replaced in this test")
settled, result = run("real", { "printf", "really" })
assert(settled.ok, settled.error)
check.equal(result.stdout, "really")
-- Outside of tests, and for those that a test doesn't know, all is as before.
check.equal(flow.exec({ "printf", "out" }):await().stdout, "out")
settled = run(function() return testing.run(flow.ops.ExecOp { "inner" }).error.message end)
assert(settled.ok, settled.error)

-- In workers the function can't be called.
local WorkerOp = flow.op("WorkerOp", {
  thread = "worker", gives = { out = "string" },
  run = function(ctx) ctx:set("out", flow.exec({ "printf", "worker" }):await().stdout) end,
})
for _, exec in ipairs { false, counted } do
  settled = testing.run(WorkerOp, { exec = exec or nil })
  check.equal(settled.error.kind, "usage")
  check.contains(settled.error.message, "program 'printf' isn't replaced in this test: ", "main thread")
end
settled = testing.run(WorkerOp, { exec = "real" })
assert(settled.ok, settled.error)
check.equal(settled.data.out, "worker")

-- Wrong results, and wrong options.
local function wrong(value, ...)
  settled = run(function() return value end)
  check.equal(settled.error.kind, "usage")
  check.contains(settled.error.message, "'exec' of testing.run", "program 'curl'", ...)
end
wrong(nil, "nothing was returned, so it isn't replaced")
wrong(5, "table or string expected, got number")
wrong({ status = 256 }, "field 'status': integer from 0 to 255 expected, got 256")
wrong({ status = "0" }, "field 'status'")
wrong({ stdout = 1 }, "field 'stdout': string expected, got number")
wrong({ out = "" }, "unknown field 'out'; known are 'status', 'stderr', 'stdout'")
wrong({ "" }, "unknown field '1'")
for _, value in ipairs { 1, true, {}, "fake" } do
  check.usage(function() testing.run(EchoOp, { exec = value }) end, "run",
    "field 'exec': function or \"real\" expected, got ", type(value) == "string" and "fake" or type(value))
end
