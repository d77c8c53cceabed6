-- A script ends after everything it started has ended, and an error of the main chunk cancels the rest.
local host = require "host"
local check = require "check"
local begin = [[
  local flow = require "flow"
  local SlowOp = flow.op("SlowOp", function(ctx, seconds)
    ctx:defer(function() flow.sleep(0.01) print "cleaned up" end)
    flow.sleep(seconds)
    print "done"
  end)
]]
local result = host.script(begin .. "SlowOp(0.02):start() print 'end of the chunk'")
check.equal(result.stdout, "end of the chunk\ndone\ncleaned up\n")
check.equal(result.status, 0)
result = host.script(begin .. "SlowOp(100):start() flow.spawn(flow.sleep, 100) error 'failed'")
check.equal(result.stdout, "cleaned up\n")
check.contains(result.stderr, ":7: failed\nstack traceback:")
check.equal(result.status, 1)
-- Runs that are started when others are cancelled are cancelled as well.
result = host.script(begin .. [[
  local f
  f = flow.new("again"):add(SlowOp(100)):did_finish(function(run) print(run.error) f:start() end)
  f:start()
  error("failed", 0)
]])
check.equal(result.status, 1)
check.contains(result.stdout, "cleaned up\ncancelled: failed\ncleaned up\n")
-- An error object's text is the reason; an unobserved failure is also reported.
result = host.script(begin .. [[
  flow.op("FailingOp", function() error "lost" end):start()
  SlowOp(100):start():next(function(task) print(task.error.message) end)
  error(setmetatable({}, { __tostring = function() return "as text" end }))
]])
check.contains(result.stdout, "cleaned up\n", "cancelled: as text\n")
check.contains(result.stderr, ": as text\n", "FailingOp failed: ", "lost")
-- Of a graph that keeps going all errors are shown.
result = host.script([[
  local flow = require "flow"
  local function fails(name) return flow.op(name, function() error("no " .. name, 0) end) end
  local run = flow.graph("nightly", { keep_going = true }):add(fails "AOp"):add(fails "BOp"):add(fails "COp"):run()
  error(run.error)
]])
check.contains(result.stderr, "[nightly/AOp] no AOp\nalso [nightly/BOp] no BOp\nalso [nightly/COp] no COp\n")
-- os.exit ends it at once, wherever it is called.
for _, place in ipairs { "os.exit(4)", "SlowOp(100):start() os.exit(4)",
  "flow.op('ExitOp', function() os.exit(4) end):run()",
  "flow.op('ExitOp', function() flow.sleep(0.001) coroutine.wrap(os.exit)(4) end):start()",
  "flow.spawn(function() flow.sleep(0.001) os.exit(4, true) end):await()",
  "table.sort({ 1, 2 }, function() flow.sleep(0.001) os.exit(4, true) end)",
  "SlowOp(0.001):start():next(function() os.exit(4) end)" } do
  result = host.script(begin .. place)
  check.equal(result.status, 4, place)
  check.equal(result.stderr, "", place)
end
-- Chunks of the command line are part of it.
result = host.run(host.binary, { "-e", begin .. "SlowOp(0.01):start()", "-e", "print 'second'" })
check.equal(result.stdout, "second\ndone\ncleaned up\n")
result = host.run(host.binary, { "-i" }, { stdin = "flow = require 'flow'\n"
  .. "x = flow.spawn(function() flow.sleep(0.01) print 'from a task' end)\n" })
check.contains(result.stdout, "from a task\n")
check.equal(result.status, 0)
