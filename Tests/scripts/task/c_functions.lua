-- An error of a function of the host or of C that a task calls itself names the line that started the task.
local flow, check = require "flow", require "check"

local function line() return ("c_functions.lua:%d: "):format(debug.getinfo(2, "l").currentline) end
local function expect(place, task, ...)
  local err = check.raises(function() task:await() end, ...)
  check.contains(err.message, place)
end
expect(line(), flow.spawn(flow.sleep, -1), "bad argument #1 to 'sleep' (a finite number of seconds")
expect(line(), flow.spawn(flow.fs.read, 7), "bad argument #1 to 'read' (path expected, got number)")
expect(line(), flow.spawn(flow.fs.read, "/nonexistent"), "can't read '/nonexistent'")
expect(line(), flow.spawn(string.rep), "bad argument #1 to 'string.rep' (string expected, got no value)")
expect(line(), flow.resolved(1):next(flow.sleep), "bad argument #1 to 'sleep' (number expected, got task)")
expect(line(), flow.spawn(flow.spawn), "bad argument #1 to 'spawn' (function expected, got no value)")

-- Where a function of the script is, its line is named; an error without a position has none.
local function fails() error("no place", 0) end
local function sleeps() flow.sleep(-1) end
local err = check.raises(function() flow.spawn(fails):await() end, "no place")
check.equal(err.message, "no place")
err = check.raises(function() flow.spawn(sleeps):await() end, "bad argument")
check.contains(err.message, "c_functions.lua:" .. debug.getinfo(sleeps, "S").linedefined)

-- One that has a place keeps that alone, and one that is to have none has none.
local function message(...)
  local task = flow.spawn(...)
  return check.raises(function() task:await() end, "x").message
end
check.match(message(coroutine.wrap(function() error "x" end)), "^[^:]*c_functions.lua:%d+: x$")
check.equal(message(error, "x", 0), "x")
check.equal(message(assert, false, "x"), "x")
