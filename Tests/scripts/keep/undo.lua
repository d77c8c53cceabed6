-- A resumed run that fails undoes what earlier processes did, and what was undone is executed again.
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

-- The same process.
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
