-- A crash at any point of a process that takes or sends messages loses none, and no op gets one twice.
-- clock: real: the script is another program
-- Only debug builds have the points. scripts/test has made one beside the tests.
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"
local recovery = require "recovery"

local program = recovery.program_with_points()
if not program then return check.skip "no debug build, which has the points of crashes" end

local TEXT = [[
local AOp = flow.op("AOp", function(ctx)
  effect("A " .. ctx:wait_for "m" .. " " .. ctx:wait_for "m")
end)
local BOp = flow.op("BOp", function(ctx)
  flow.send(ctx.run, "own", "own")
  effect("B " .. ctx:wait_for "m" .. " " .. ctx:wait_for "own")
end)
flow.new("both"):add(AOp):add(BOp):run():await()
]]

local function send(script, id, environment, ...)
  local words = { "env", "-u", "FLOWLUA_KEEP" }
  for name, value in pairs(environment) do words[#words + 1] = name .. "=" .. value end
  words[#words + 1] = kept.binary(program)
  for _, word in ipairs { "--send", id, ... } do words[#words + 1] = word end
  return flow.exec(words, { cwd = script.folder, check = false }):await().status
end

-- Crashes at this point of the process that takes messages; returns whether it came.
local function crash_of_receiver(point)
  local script = kept.script(TEXT)
  script.program = program
  local result = script:run { "--keep" }
  check.equal(result.status, 75, result.stderr)
  local id = result.stderr:match "^(r%w+) waits for"
  check.equal(send(script, id, {}, "m=1"), 0)
  check.equal(send(script, id, {}, "m=2", "m=3"), 0)
  local status = script:run({ "--resume", environment = { FLOWLUA_CRASH_AT = point } }).status
  if status ~= 0 then
    check.equal(status, 137, "point " .. point)
    check.equal(script:run({ "--resume=" .. id }).status, 0, "point " .. point)
  end
  -- An op that had the effect before the crash has the same messages again.
  for _, line in ipairs(script:effects()) do
    assert(line == "A 1 2" or line == "B 3 own", "point " .. point .. ": " .. line)
  end
  flow.fs.remove(script.folder, { recursive = true })
  return status ~= 0
end

-- Crashes at this point of the process that sends: it has sent both messages, or none.
local function crash_of_sender(point)
  local script = kept.script(TEXT)
  script.program = program
  local id = script:run({ "--keep" }).stderr:match "^(r%w+) waits for"
  local status = send(script, id, { FLOWLUA_CRASH_AT = point }, "m=1", "m=2")
  check.equal(script:run({ "--resume" }).status, 75)
  local effects = table.concat(script:effects(), " ")
  if status == 0 then check.equal(effects, "A 1 2") end
  assert(effects == "A 1 2" or effects == "", effects)
  flow.fs.remove(script.folder, { recursive = true })
  return status ~= 0
end

-- Crashes at this point of the process that takes the answer about an effect: it counts for one execution.
local function crash_of_answer(point)
  local script = kept.script [[
    flow.op("PayOp", { effect = "once", run = function()
      effect "pay"
      if os.getenv "DIE" then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
    end }):run():await()]]
  script.program = program
  check.equal(script:run({ "--keep", environment = { DIE = 1 } }).status, 137)
  script:effects()
  local id = script:run({ "--runs" }).stdout:match "\n(r%w+)"
  check.equal(send(script, id, {}, "PayOp=again"), 0)
  local status = script:run({ "--resume", environment = { FLOWLUA_CRASH_AT = point } }).status
  local last = status
  if status ~= 0 then
    check.equal(status, 137, "point " .. point)
    last = script:run({ "--resume=" .. id }).status
  end
  local effects = #script:effects()
  -- It had begun: the next process asks again.
  if last == 75 then assert(effects <= 1, "point " .. point) else check.equal(last .. " " .. effects, "0 1", "point " .. point) end
  flow.fs.remove(script.folder, { recursive = true })
  return status ~= 0
end

for _, crash in ipairs { crash_of_receiver, crash_of_sender, crash_of_answer } do
  local point = 1
  while crash(point) do point = point + (point > 30 and 3 or 1) end
  assert(point > 3, "no points")
end
