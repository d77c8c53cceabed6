-- The first and second Ctrl-C and SIGTERM end a script as documented, running or waiting.
local host = require "host"
local check = require "check"

local function signalled(signals, text, program)
  return host.signalled(program or host.binary, { "-e", "io.stdout:setvbuf 'no'\n" .. text }, signals)
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
-- Like lua5.4.
for _, text in ipairs {
  "print 'ready' while true do end",
  "print 'ready' local function f() while true do end end f()",
  "print 'ready' print(pcall(function() while true do end end))",
} do
  local ours, theirs = signalled("INT", text), signalled("INT", text, "lua5.4")
  check.equal(ours.status, theirs.status)
  check.equal(ours.stdout:gsub(host.binary:gsub("%p", "%%%0"), "lua5.4"), theirs.stdout)
end

-- A `__close` of a body's variables is a cleanup, whose waits they leave alone: of a body that waits, that
-- is busy, that waits below a C function, and that closes already.
for _, body in ipairs {
  "flow.sleep(100)", "while true do end", "table.sort({ 1, 2 }, function() flow.sleep(100) end)", "",
} do
  for _, signal in ipairs { "INT", "TERM", "HUP" } do
    local result = signalled(signal, ([[
      local flow = require "flow"
      local seconds = %s
      flow.op("ClosingOp", function()
        local closing <close> = setmetatable({}, { __close = function()
          if seconds > 0.1 then print "ready" end
          flow.sleep(seconds)
          print "closed"
        end })
        if seconds < 0.1 then print "ready" end
        %s
      end):start()]]):format(body == "" and 0.3 or 0.02, body))
    check.equal(result.stdout:match("ready\nclosed\n") and signal, signal, body)
  end
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
contains(130, "INT", slow .. "print 'ready' SlowOp:run()",
  "cleaned up\n", "(command line):7: interrupted!\nstack traceback:")
contains(130, "INT", slow .. "print 'ready' flow.sleep(100)", "(command line):7: interrupted!")
contains(130, "INT", slow .. "print 'ready' SlowOp:start()", "cleaned up\n", ": interrupted!\n")
contains(130, "INT", slow .. "print 'ready' table.sort({ 1, 2 }, function() SlowOp:run() end)",
  "cleaned up\n", "interrupted!")
contains(130, "INT", "local flow = require 'flow' print 'ready' flow.exec { 'sleep', '100' }:await()",
  "interrupted!")
expect(130, "ready\n", "INT INT", slow .. [[
  print "ready"
  while true do pcall(flow.sleep, 100) end]])
-- An op that is busy fails with it.
expect(0, "ready\ncleaned up\n[BusyOp] interrupted!\n", "INT", [[
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
-- It comes while an op executes, and the code that has started the op never waits.
for _, body in ipairs { "", "error 'no'", "while true do end", "pcall(function() while true do end end)" } do
  local result = host.run(host.binary, { "-e", ([[
    local flow = require "flow"
    local kill = "kill -s TERM " .. io.open("/proc/self/stat"):read "n"
    flow.op("KillOp", { timeout = 0.01, run = function() os.execute(kill) %s end }):run()
    for i = 1, 1e6 do flow.op("NextOp", function() end):run() end
    print "never"]]):format(body) })
  check.equal(result.status .. result.stdout, "143", body)
end
-- SIGHUP is as SIGTERM, and comes twice from some shells.
expect(129, "ready\ncleaned up\n", "HUP", slow .. "print 'ready' SlowOp:run()")
expect(129, "ready\ncleaned up\n", "HUP HUP", slow:gsub("0.01", "0.5") .. "print 'ready' SlowOp:run()")
-- Cleanups have their grace, by default longer than anybody's patience with a function of C.
local function stubborn(seconds, busy)
  return ([[
    local flow = require "flow"
    local StubbornOp = flow.op("StubbornOp", function(ctx)
      ctx:defer(function()
        if %s then
          print "ready"
          local till = flow.now() + %s
          while flow.now() < till do end
        else
          flow.sleep(%s)
        end
        print "cleaned up"
      end)
      if not %s then
        print "ready"
        flow.sleep(100)
      end
    end)
    StubbornOp:run()]]):format(busy, seconds, seconds, busy)
end
expect(143, "ready\ncleaned up\n", "TERM", stubborn(3.5, false))
for _, busy in ipairs { true, false } do
  contains(130, "INT", stubborn(1.5, busy), "ready\ncleaned up\n", "interrupted!")
  expect(143, "ready\ncleaned up\n", "TERM", stubborn(1.5, busy))
  -- The second one cuts them, and says so.
  for signal, status in pairs { INT = 130, TERM = 143 } do
    contains(status, signal .. " " .. signal, stubborn(30, busy), "ready\n", "again: cleanups were cut\n")
  end
end
contains(130, "TERM INT", stubborn(30, false), "interrupted again: cleanups were cut\n")
-- A line names the runs that are cut at the end of the grace, too.
local function short(signal, status, busy)
  local result = host.signalled(host.binary,
    { "--grace", "0.2", "-e", "io.stdout:setvbuf 'no' " .. stubborn(30, busy) }, signal)
  check.equal(result.status, status)
  check.contains(result.stdout, "StubbornOp failed: the cleanup of [StubbornOp] at (command line):",
    " was cut after a grace of 0.2s, while it " .. (busy and "was busy" or "waited in flow.sleep at (command line):"))
end
for _, busy in ipairs { true, false } do
  short("INT", 130, busy)
  short("TERM", 143, busy)
  short("HUP", 129, busy)
end
-- A program that a cleanup runs isn't stopped.
expect(143, "ready\ndone\n\n", "TERM", [[
  local flow = require "flow"
  flow.op("ExecOp", function(ctx)
    ctx:defer(function()
      print "ready"
      print(flow.exec({ "sh", "-c", "sleep 0.5; echo done" }):await().stdout)
    end)
  end):run()]])

-- A handler that the script has set before stays.
for _, name in ipairs { "TERM", "HUP" } do
  expect(0, "ready\nhandled\n", name, ([[
    local uv = require "luv"
    local signal = uv.new_signal()
    uv.signal_start(signal, "sig%s", function() print "handled" signal:close() end)
    require("flow").op("AnOp", function() end):run()
    print "ready"
    uv.run()]]):format(name:lower()))
end
