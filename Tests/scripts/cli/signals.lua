-- Ctrl-C and SIGTERM, the first and the second one, while something runs and while all waits.
local host = require "host"
local check = require "check"

-- Runs a script, sends it signals once it has said so, and shows what it printed and its status. In the
-- background a shell has SIGINT ignored; as lua5.4, flowlua takes it all the same.
local RUNNER = [[
  output=$(mktemp)
  "$1" -e "$2" >"$output" 2>&1 &
  process=$!
  until grep -q ready "$output"; do sleep 0.01; done
  sleep 0.05
  for signal in $3; do kill -s "$signal" $process 2>/dev/null; sleep 0.2; done
  wait $process
  status=$?
  cat "$output"
  rm "$output"
  exit $status
]]
local function signalled(signals, text, program)
  text = "io.stdout:setvbuf 'no'\n" .. text
  return host.run("bash", { "-c", RUNNER, "bash", program or host.binary, text, signals })
end
local function expect(status, output, signals, text)
  local result = signalled(signals, text)
  check.equal(result.status, status, text)
  check.equal(result.stdout, output, text)
end
local function contains(status, signals, text, ...)
  local result = signalled(signals, text)
  check.equal(result.status, status, text)
  check.contains(result.stdout, ...)
end

-- While Lua runs: an error that can be caught.
contains(1, "INT", "print 'ready' while true do end", "interrupted!\nstack traceback:")
expect(0, "ready\nfalse\tinterrupted!\non\n", "INT",
  "print 'ready' print(pcall(function() while true do end end)) print 'on'")
contains(1, "INT", "print 'ready' coroutine.wrap(function() while true do end end)()", "interrupted!")
expect(0, "ready\nfalse\tdead\n", "INT", [[
  print 'ready'
  local co = coroutine.create(function() coroutine.wrap(function() while true do end end)() end)
  print((coroutine.resume(co)), coroutine.status(co))]])
-- Coroutines that come and go faster than any signal.
contains(1, "INT", [[
  print 'ready'
  while true do coroutine.wrap(function() coroutine.yield(1) end)() end]], "interrupted!")
-- A script's own hook stays.
expect(0, "ready\nfalse\ttrue\ttrue\n", "INT", [[
  local count = 0
  debug.sethook(function() count = count + 1 end, "", 1000)
  print 'ready'
  print(pcall(function() while true do end end) and 1 or false, debug.gethook() ~= nil, count > 0)]])
-- The second one kills.
expect(130, "ready\n", "INT INT", [[
  print 'ready'
  while true do pcall(function() while true do end end) end]])
-- As in lua5.4.
for _, text in ipairs {
  "print 'ready' while true do end",
  "print 'ready' local function f() while true do end end f()",
  "print 'ready' print(pcall(function() while true do end end))",
} do
  local ours, theirs = signalled("INT", text), signalled("INT", text, "lua5.4")
  check.equal(ours.status, theirs.status)
  check.equal(ours.stdout:gsub(host.binary:gsub("%p", "%%%0"), "lua5.4"), theirs.stdout)
end

-- While all waits: the runs are cancelled, then the main chunk's wait raises it.
local slow = [[
  local flow = require "flow"
  local SlowOp = flow.op("SlowOp", function(ctx)
    ctx:defer(function() flow.sleep(0.01) print "cleaned up" end)
    flow.sleep(100)
  end)
]]
expect(0, [[
ready
cleaned up
false	(command line):9: interrupted!
cancelled: interrupted!
]], "INT", slow .. [[
  print "ready"
  local run = SlowOp:start()
  print(pcall(run.wait, run))
  print(run.error)]])
contains(1, "INT", slow .. "print 'ready' SlowOp:run()",
  "cleaned up\n", "(command line):7: interrupted!\nstack traceback:")
contains(1, "INT", slow .. "print 'ready' flow.sleep(100)", "(command line):7: interrupted!")
contains(1, "INT", slow .. "print 'ready' SlowOp:start()", "cleaned up\n", ": interrupted!\n")
contains(1, "INT", slow .. "print 'ready' table.sort({ 1, 2 }, function() SlowOp:run() end)",
  "cleaned up\n", "interrupted!")
contains(1, "INT", "local flow = require 'flow' print 'ready' flow.exec { 'sleep', '100' }:await()",
  "interrupted!")
expect(130, "ready\n", "INT INT", slow .. [[
  print "ready"
  while true do pcall(flow.sleep, 100) end]])
-- An op that is busy fails with it.
expect(0, "ready\ncleaned up\ninterrupted!\n", "INT", [[
  local flow = require "flow"
  local BusyOp = flow.op("BusyOp", function(ctx)
    ctx:defer(function() print "cleaned up" end)
    while true do end
  end)
  print "ready"
  print(BusyOp:run().error)]])

-- SIGTERM: at once without flows; with flows the cleanups run, and what was printed comes out.
expect(143, "ready\n", "TERM", "print 'ready' while true do end")
for _, rest in ipairs { "SlowOp:run()", "SlowOp:start()", "SlowOp:start() while true do end",
  "SlowOp:start() pcall(function() while true do pcall(error) end end)",
  "SlowOp:start() coroutine.wrap(function() while true do end end)()",
  "SlowOp:start() flow.sleep(100)", "flow.new('f'):add(SlowOp):start():wait()",
  "table.sort({ 1, 2 }, function() SlowOp:run() end)" } do
  expect(143, "ready\ncleaned up\n", "TERM",
    slow .. "print 'ready' io.stdout:setvbuf 'full' " .. rest)
end
expect(143, "ready\n", "TERM TERM", [[
  local flow = require "flow"
  local StubbornOp = flow.op("StubbornOp", function(ctx)
    ctx:defer(function() flow.sleep(100) end)
    flow.sleep(100)
  end)
  print "ready"
  StubbornOp:run()]])
