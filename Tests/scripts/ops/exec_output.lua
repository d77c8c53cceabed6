-- The output of a stopped or failed program isn't lost.
-- clock: real: the virtual clock stands still while a program runs
local flow, check = require "flow", require "check"

local function shell(text, options) return flow.exec({ "sh", "-c", text }, options) end
-- Says that it has printed by a file, so that nothing depends on how fast it starts.
local function printing(text, path)
  return ("echo out; echo first >&2; %s; : >%s; sleep 100 & wait"):format(text, path)
end
local function wait_for(path)
  while true do
    local file = io.open(path)
    if file then file:close() os.remove(path) return end
    flow.sleep(0.002)
  end
end
local path = os.tmpname()
os.remove(path)

-- A cancel.
local task = shell(printing("echo 'last words' >&2", path))
wait_for(path)
task:cancel "enough"
local e = check.raises(function() task:await() end)
check.equal(e.kind, "cancelled")
check.equal(e.message, "cancelled: enough: last words")
check.equal(e.stdout, "out\n")
check.equal(e.stderr, "first\nlast words\n")
check.equal(e.signal, 15)
check.equal(task.stdout, "out\n")

-- A timeout: long enough for a busy machine to have started the program.
task = shell("echo out; echo 'last words' >&2; sleep 100 & wait", { timeout = 1 })
e = check.raises(function() task:await() end)
check.equal(e.kind, "timeout")
check.equal(e.message, "timed out after 1s: last words")
check.equal(e.stdout, "out\n")
check.equal(e.stderr, "last words\n")
check.equal(task.stderr, "last words\n")

-- One that ignores SIGTERM is killed; what is left in its pipes counts.
task = shell(("trap '' TERM; echo out; echo deaf >&2; : >%s; sleep 100"):format(path))
wait_for(path)
task:cancel()
e = check.raises(function() task:await() end)
check.equal(e.message, "cancelled: deaf")
check.equal(e.stdout, "out\n")
check.equal(e.signal, 9)

-- As an op: what it gives is there as well.
local run = flow.ops.ExecOp({ "sh", "-c", printing("echo 'last words' >&2", path) }):start()
wait_for(path)
run:cancel "enough"
run:wait()
check.equal(run.state, "cancelled")
check.equal(run.data.stdout, "out\n")

-- The message ends with the last line, however it ends.
for text, line in pairs {
  ["printf 'a\\n b \\n\\n' >&2; exit 3"] = ":  b",
  ["printf '10%%\\r20%%' >&2; exit 3"] = ": 20%",
  ["printf '\\n \\n' >&2; exit 3"] = "exited with status 3",
  ["kill $$"] = "(Terminated)",
} do
  local failed = shell(text)
  failed:wait()
  check.equal(failed.error.message:sub(-#line), line, text)
end
local long = shell("i=0; while [ $i -lt 500 ]; do printf é >&2; i=$((i+1)); done; exit 3")
long:wait()
check.equal(#long.error.message:match "…(.*)$", 400)
check.equal(#long.error.stderr, 1000)

-- Fields of the result, from its end on.
task = shell("echo out; exit 3", { check = false })
for _, name in ipairs { "status", "signal", "stdout", "stderr" } do
  check.raises(function() return task[name] end, "exec_output.lua:",
    ("'%s' isn't there yet: await the task first"):format(name))
end
check.equal(check.raises(function() return task.stdout end).kind, "usage")
task:wait()
check.equal(task.status, 3)
check.equal(task.stdout, "out\n")
check.equal(task.stderr, "")
check.equal(task.signal, nil)
task = shell "echo out; kill -9 $$"
task:wait()
check.equal(task.signal, 9)
check.equal(task.status, 137)
check.equal(task.stdout, "out\n")
check.equal(task.error.stdout, "out\n")
task = flow.exec { "no-such-program" }
task:wait()
check.equal(task.stdout, nil)
check.equal(task.faulted, true)
task = flow.exec({ "true" }, { capture = false })
task:wait()
check.equal(task.status, 0)
check.equal(task.stdout, nil)
-- Another task has no such fields.
check.equal(rawequal(flow.context().task.stdout, nil), true)
