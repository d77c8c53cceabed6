-- flow.exec runs a program as a task, with a result, errors and all methods of tasks.
-- clock: real: the virtual clock stands still while a program runs
local flow, check = require "flow", require "check"

local task = flow.exec { "sh", "-c", "printf 'a\\0b'; echo err >&2" }
check.equal(task.state, "pending")
check.equal(task.completed, false)
check.equal(task.result, nil)
check.equal(task.error, nil)
check.equal(tostring(task), "task: exec (pending)")
check.same(task:await(), { status = 0, stdout = "a\0b", stderr = "err\n" })
check.equal(task.result, task:await())
check.equal(task.state, "succeeded")
check.equal(task.completed, true)
check.equal(task.faulted, false)
check.equal(task.cancelled, false)
check.equal(task:cancel(), false)
check.equal(task:wait(), true)
check.equal(tostring(task), "task: exec (succeeded)")
check.equal(flow.exec({ "cat" }, { stdin = "in" }):await().stdout, "in")
check.equal(flow.exec({ "pwd" }, { cwd = "/" }):await().stdout, "/\n")
check.equal(flow.exec({ "sh", "-c", "echo $A" }, { env = { A = "x" } }):await().stdout, "x\n")

-- A status other than 0 is an error with all there is to know; unchecked it is a result.
local command = { "sh", "-c", "echo out; echo no >&2; exit 3" }
local failed = flow.exec(command)
local raised = check.raises(function() failed:await() end)
check.equal(raised, failed.error)
check.equal(failed.faulted, true)
check.equal(failed.result, nil)
check.equal(raised.kind, "error")
check.equal(raised.message, "sh -c 'echo out; echo no >&2; exit 3' exited with status 3: no")
check.equal(raised.code, 3)
check.equal(raised.status, 3)
check.equal(raised.signal, nil)
check.equal(raised.stdout, "out\n")
check.equal(raised.stderr, "no\n")
check.same(flow.exec(command, { check = false }):await(),
  { status = 3, stdout = "out\n", stderr = "no\n" })
check.same(flow.exec({ "sh", "-c", "kill -9 $$" }, { check = false }):await(),
  { status = 137, signal = 9, stdout = "", stderr = "" })
local killed = check.raises(function() flow.exec({ "sh", "-c", "kill -15 $$" }):await() end,
  "was ended by signal 15 (Terminated)")
check.equal(killed.signal, 15)
check.equal(killed.code, 143)

-- A program that can't be started: the system's number, and no status.
for program, number in pairs { ["no-such-program"] = 2, ["/etc/passwd"] = 13 } do
  local e = check.raises(function() flow.exec({ program }):await() end,
    "can't run '" .. program .. "': ")
  check.equal(e.code, number)
  check.equal(e.status, nil)
end

-- Timeout, cancel, the end of a scope. Processes that a program started end with it.
local late = flow.exec({ "sh", "-c", "sleep 100 & wait" }, { timeout = 0.02 })
local e = check.raises(function() late:await() end, "timed out after 0.02s")
check.equal(e.kind, "timeout")
check.equal(late.state, "failed")
check.equal(flow.exec({ "true" }, { timeout = 100 }):await().status, 0)
local stopped = flow.exec { "sleep", "100" }
check.equal(stopped:wait(0.01), false)
check.equal(stopped:cancel("enough"), true)
check.equal(stopped.state, "pending")
check.equal(stopped:wait(), true)
check.equal(stopped.state, "cancelled")
check.equal(stopped.cancelled, true)
check.equal(stopped.faulted, false)
check.equal(stopped.error.kind, "cancelled")
check.raises(function() stopped:await() end, "cancelled: enough")
local scoped
do
  local closed <close> = flow.exec { "sleep", "100" }
  scoped = closed
end
check.equal(scoped.state, "cancelled")
check.equal(scoped.error.message, "cancelled")
local ok = pcall(function()
  local closed <close> = flow.exec { "sleep", "100" }
  scoped = closed
  error "on purpose"
end)
check.equal(ok, false)
check.equal(scoped.state, "cancelled")
-- One that is asked politely may take its time, and write.
local polite = flow.exec { "sh", "-c", "trap 'echo bye >&2; exit 0' TERM; echo up >&2; while :; do sleep 0.01; done" }
polite:wait(0.02)
polite:cancel()
polite:wait()
check.equal(polite.state, "cancelled")

-- Programs run beside each other: the first reads what the second writes. They do so in ops too.
local fifo = os.tmpname()
os.remove(fifo)
flow.exec({ "mkfifo", fifo }):await()
local reader = flow.exec { "cat", fifo }
flow.exec({ "sh", "-c", "echo through > " .. fifo }):await()
check.equal(reader:await().stdout, "through\n")
os.remove(fifo)
local EchoOp = flow.op("EchoOp", { gives = { said = "string" }, run = function(ctx)
  ctx:set("said", flow.exec({ "echo", "hi" }):await().stdout)
end })
check.equal(EchoOp:run().data.said, "hi\n")
local FalseOp = flow.op("FalseOp", function() flow.exec({ "false" }):await() end)
local run = FalseOp:run()
check.equal(run.error.message, "false exited with status 1")
check.equal(run.error.code, 1)
check.equal(run.error.op, "FalseOp")

-- Wrong use.
check.usage(function() flow.exec() end, "exec", "#1", "table expected", "no value")
check.usage(function() flow.exec "ls" end, "exec", "#1", "table expected", "string")
check.usage(function() flow.exec {} end, "exec", "#1", "name of a program")
check.usage(function() flow.exec { "echo", "a\0b" } end, "exec", "#1", "word #2", "NUL", "a\\0b")
check.usage(function() flow.exec { "echo", {} } end, "exec", "#1", "list of strings")
check.usage(function() flow.exec({ "true" }, 1) end, "exec", "#2", "table expected", "number")
check.usage(function() flow.exec({ "true" }, { chek = 1 }) end, "exec", "#2", "did you mean 'check'?")
for _, seconds in ipairs { 0, -1, 0 / 0, 1 / 0, "1" } do
  check.usage(function() flow.exec({ "true" }, { timeout = seconds }) end, "exec", "#2", "'timeout'")
end
check.usage(function() task.await() end, "await", "bad self", "task expected, got no value")
check.usage(function() task.cancel(flow) end, "cancel", "bad self", "task expected, got table")
check.usage(function() task:cancel(print) end, "cancel", "#1", "string expected, got function")
check.usage(function() task:wait(-1) end, "wait", "#1", "seconds")
check.usage(function() task.x = 1 end, "can't set field 'x' of task")
check.equal(task.nothing, nil)
