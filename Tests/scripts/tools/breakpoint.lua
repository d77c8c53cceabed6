-- A debugger such as mobdebug stops in ops, functions of tasks and callbacks.
-- Its hook on the main coroutine sees the locals where it stops, and may step from there.
-- expect-stderr: warning: StopOp at debugged:2 returns a value
local flow = require "flow"
local check = require "check"
local breakpoints, stops, level, step_over = {}, {}, 0, nil
local function locals()
  local values = {}
  for i = 1, 10 do
    local name, value = debug.getlocal(3, i)
    if not name then return values end
    values[name] = value
  end
end
local function hook(event, line)
  if event == "call" or event == "tail call" then level = level + 1
  elseif event == "return" then level = level - 1
  elseif debug.getinfo(2, "S").source == "=debugged" and (breakpoints[line] or step_over) then
    step_over = not step_over
    stops[#stops + 1] = { line = line, locals = locals(), where = debug.traceback("", 2) }
  end
end
local text = [[
local flow = ...
local StopOp = flow.op("StopOp", function(ctx, name)
  local greeting = "hello, " .. name
  ctx:set("greeting", greeting)                        -- 4
  flow.sleep(0.001)
  local rest = #greeting
  return rest                                          -- 7
end)
StopOp("Ada"):run():await()
flow.spawn(function()
  flow.sleep(0.001)
  local value = 12
  return value                                         -- 13
end):await()
]]
breakpoints = { [4] = true, [7] = true, [13] = true }
debug.sethook(hook, "crl")
assert(load(text, "=debugged"))(flow)
debug.sethook()
local lines = {}
for i, stop in ipairs(stops) do lines[i] = stop.line end
-- From each breakpoint one step is made.
check.equal(table.concat(lines, " "), "4 5 7 10 13 14")
check.equal(stops[1].locals.greeting, "hello, Ada")
check.equal(stops[1].locals.name, "Ada")
check.equal(stops[3].locals.rest, 10)
check.equal(stops[5].locals.value, 12)
check.contains(stops[1].where, "debugged:4: in function <debugged:2>")
