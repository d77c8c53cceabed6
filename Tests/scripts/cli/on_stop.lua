-- With `flow.on_stop` the first signal lets a script end by itself; its grace, a second signal and `"cancel"` cancel everything.
-- clock: real: signals of the system
local check, host = require "check", require "host"

local head = [[
  io.stdout:setvbuf "no"
  local flow = require "flow"
  local SlowOp = flow.op("SlowOp", function(ctx)
    ctx:defer(function() print "cleaned up" end)
    flow.sleep(100)
  end)
]]
local function expect(status, output, signals, text)
  local result = host.signalled(host.binary, { "-e", head .. text }, signals)
  check.equal(result.status .. " " .. result.stdout, status .. " " .. output, signals .. ": " .. text)
end

-- The script ends by itself, with its own status: also code that is busy, and a worker.
for _, signal in ipairs { "INT", "TERM", "HUP", "HUP HUP" } do
  expect(0, ("ready\tfalse\nSIG%s\ttrue\ndrained\n"):format(signal:match "%a+"), signal, [[
    flow.on_stop(function(signal) print(signal, flow.stopping) end)
    print("ready", flow.stopping)
    while not flow.stopping do flow.sleep(0.01) end
    print "drained"]])
end
expect(3, "ready\nended\n", "TERM", [[
  flow.on_stop(function() flow.sleep(0.01) print "ended" os.exit(3) end)
  print "ready"
  flow.sleep(100)]])
expect(0, "ready\nstopping\n", "TERM", [[
  flow.on_stop(function() print "stopping" end)
  print "ready"
  while not flow.stopping do end]])
expect(0, "ready\nstopping\ntrue\n", "TERM", [[
  flow.on_stop(function() print "stopping" end)
  local WorkerOp = flow.op("WorkerOp", { thread = "worker", gives = { seen = "boolean" }, run = function(ctx)
    print "ready"
    while not flow.stopping do end
    ctx:set("seen", flow.stopping)
  end })
  print(WorkerOp:run().data.seen)]])
expect(0, "ready\nstopping\ndone\n", "INT", [[
  flow.on_stop(function() print "stopping" end)
  flow.op("DrainOp", function() print "ready" while not flow.stopping do flow.sleep(0.01) end end):run()
  print "done"]])

-- A second signal is the first one of before: it cancels, and cleanups run. A third one cuts them.
expect(143, "ready\nstopping\ncleaned up\n", "TERM TERM",
  [[flow.on_stop(function() print "stopping" end) print "ready" SlowOp:run()]])
expect(143, "ready\nstopping\ncleaned up\n", "INT TERM",
  [[flow.on_stop(function() print "stopping" end) print "ready" SlowOp:run()]])
local second = host.signalled(host.binary, { "-e", head ..
  [[flow.on_stop(function() print "stopping" end) print "ready" SlowOp:run()]] }, "TERM INT")
check.equal(second.status, 130)
check.contains(second.stdout, "ready\nstopping\ncleaned up\n", "interrupted!")

-- At once: `"cancel"`, and an error of the function, which is reported.
expect(143, "ready\ncleaned up\n", "TERM", [[flow.on_stop(function() return "cancel" end) print "ready" SlowOp:run()]])
expect(143, "ready\ncleaned up\n", "TERM",
  [[flow.on_stop(function() flow.sleep(0.01) return "cancel" end) print "ready" SlowOp:run()]])
local raised = host.signalled(host.binary, { "-e", head ..
  [[flow.on_stop(function() error("no", 0) end) print "ready" SlowOp:run()]] }, "HUP")
check.equal(raised.status, 129)
check.contains(raised.stdout, "ready\ncleaned up\n", "failed: no")

-- A function that never returns, a script that doesn't end, and code that is busy: until the grace is over.
for _, text in ipairs {
  "flow.on_stop(function() flow.sleep(1000) end) print 'ready' SlowOp:run()",
  "flow.on_stop(function() while true do end end) print 'ready' SlowOp:run()",
  "flow.on_stop(function() while true do pcall(function() while true do end end) end end) print 'ready' SlowOp:run()",
  "flow.on_stop(function() end) print 'ready' SlowOp:run()",
} do
  local result = host.signalled(host.binary, { "--grace", "0.3", "-e", head .. text }, "TERM")
  check.equal(result.status, 143, text)
  check.contains(result.stdout, "ready\ncleaned up\n")
end

-- Without a signal it changes nothing, and doesn't keep the script.
check.equal(host.run(host.binary, { "-e", head .. "flow.on_stop(print) print(flow.stopping)" }).stdout, "false\n")

-- Misuse.
local flow = require "flow"
check.usage(function() flow.on_stop() end, "on_stop", "#1", "function expected, got no value")
check.usage(function() flow.on_stop "SIGTERM" end, "on_stop", "#1", "function expected, got string")
flow.on_stop(print)
check.usage(function() flow.on_stop(print) end, "on_stop", "the script has such a function already")
local session = host.run(host.binary, { "-i" }, { stdin = "flow = require 'flow' flow.on_stop(print)\n" })
check.contains(session.stdout .. session.stderr, "only a script that flowlua runs gets signals")
