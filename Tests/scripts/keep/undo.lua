-- A resumed run that fails undoes what earlier processes did, and what was undone is executed again with another key.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local text = [[
local function create(name)
  return flow.op(name, {
    run = function(ctx)
      effect("create " .. ctx.name)
      ctx:set(ctx.name, "made by " .. ctx.name)
    end,
    undo = function(ctx)
      flow.sleep(0.001)
      effect("undo " .. ctx.name .. " " .. ctx:get(ctx.name, "string"))
    end,
  })
end
local LastOp = flow.op("LastOp", function(ctx)
  effect "last"
  if os.getenv "END" == "fail" then ctx:fail "no" end
  if os.getenv "END" == "kill" then
    flow.sleep(0.05)
    os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n")
  end
end)
local WrappedOp = flow.wrap(create "WrappedOp", function(_, run) run() end)
local machine = flow.machine {
  name = "m", start = "a",
  flow.step("a", { run = create "StepOp" }),
}
flow.new("work"):add(create "AOp"):add(flow.new("inner"):add(create "BOp")):add(WrappedOp)
  :add(machine):add(LastOp):run()
]]
local CREATED = { "create AOp", "create BOp", "create WrappedOp", "create StepOp", "last" }
local UNDONE = { "undo StepOp made by StepOp", "undo WrappedOp made by WrappedOp",
  "undo BOp made by BOp", "undo AOp made by AOp" }

local function both(first, second)
  local all = table.move(first, 1, #first, 1, {})
  return table.unpack(table.move(second, 1, #second, #all + 1, all))
end

-- Undone by the same process.
local script = kept.script(text)
check.equal(script:run({ "--keep", environment = { END = "fail" } }).status, 1)
script:expect_effects(both(CREATED, UNDONE))
local shown = script:run { "--runs" }.stdout
check.contains(shown, "0 finished, 1 failed, 5 undone")
check.contains(script:run({ "--show=" .. shown:match "%f[%w]r%w+" }).stdout, "[AOp] undone (")
local log, result = script:resume()
check.equal(result.status, 0)
script:expect_effects(table.unpack(CREATED))
check.contains(log, "[AOp] Again: it was undone", "[BOp] Again: it was undone",
  "[WrappedOp] Again: it was undone", "[StepOp] Again: it was undone")

-- A later process.
script = kept.script(text)
assert(script:run({ "--keep", environment = { END = "kill" } }).status ~= 0)
script:expect_effects(table.unpack(CREATED))
log, result = script:resume { environment = { END = "fail" } }
check.equal(result.status, 1)
check.contains(log, "[AOp] Kept from run", "[AOp] Undo: successfully")
script:expect_effects("last", table.unpack(UNDONE))
log = script:resume()
check.contains(log, "[AOp] Again: it was undone")
script:expect_effects(table.unpack(CREATED))

-- In each attempt of one process, and in each process, an undone op has another key; the undo has its op's.
script = kept.script [[
local attempt = 0
local function op(name, undoes)
  return flow.op(name, {
    run = function(ctx) effect(name .. " " .. ctx.key) end,
    undo = undoes and function(ctx) effect("undo " .. ctx.key) end,
  })
end
flow.new("work"):with { retry = 2 }:add(op("MakeOp", true)):add(op "PlainOp")
  :add(flow.new("inner"):add(op "WithinOp"):with { undo = function() end })
  :add(flow.op("FailsOp", function(ctx)
    attempt = attempt + 1
    if os.getenv "FAIL" then ctx:fail "no" end
    if attempt == 1 and os.getenv "DIE" then
      flow.sleep(0.05)
      os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n")
    end
  end)):run()
]]
local made, undone, plain, within = {}, {}, {}, {}
local lists = { MakeOp = made, undo = undone, PlainOp = plain, WithinOp = within }
local function take_effects()
  for _, line in ipairs(script:effects()) do
    local name, key = line:match "(%S+) (%S+)"
    table.insert(lists[name], key)
  end
end
script:run { "--keep", environment = { FAIL = 1 } }
for _ = 1, 2 do
  log = script:resume { environment = { FAIL = 1 } }
  check.contains(log, "[PlainOp] Kept from run", "[MakeOp] Again: it was undone")
end
take_effects()
check.equal(#made, 6)
check.equal(table.concat(made, " "), table.concat(undone, " "))
-- A process that is killed leaves its key to the next one.
script:resume { environment = { DIE = 1 } }
take_effects()
check.equal(#made, 7)
log = script:resume { environment = { DIE = 1 } }
check.contains(log, "[MakeOp] Kept from run", "[WithinOp] Kept from run")
script:resume { environment = { FAIL = 1 } }
take_effects()
check.equal(#made, 8)
check.equal(undone[7], made[7])
check.equal(undone[8], made[8])
for _, list in ipairs { made, within } do
  local seen = {}
  for _, key in ipairs(list) do
    check.equal(seen[key], nil)
    seen[key] = true
  end
end
-- An attempt repeats all of its flow.
check.equal(#plain, 2)
check.equal(plain[1], plain[2])
