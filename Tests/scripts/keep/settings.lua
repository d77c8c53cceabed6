-- A setting doesn't count as code of the ops that read it, and goes with them to workers.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local script = kept.script [[
local budget = flow.setting("budget", tonumber(os.getenv "BUDGET"))
local names = flow.setting("names", { tostring(budget.value) })
local function may(n) return n <= (budget.value or 0) and #names.value == 1 end
local function body(ctx)
  if not may(ctx:get "item") then ctx:fail "budget" end
  ctx:set("done", names.value[1])
end
local here = { needs = { item = "integer" }, gives = { done = "string" }, run = function(ctx) effect(ctx:get "item") body(ctx) end }
local WorkerOp = flow.op("WorkerOp", { needs = { item = "integer" }, gives = { done = "string" }, thread = "worker", run = body })
local function grouped(op) return flow.new("f"):data { list = { 1, 2, 3, 4 } }
  :add_grouped(op, { input = "list", output = "out", collect = "done", allow_failure = true, failures = "bad" }) end
local run = grouped(flow.op("HereOp", here)):run()
local other = grouped(WorkerOp):run()
print(#run.data.bad, #other.data.bad, #other.data.out)
if #run.data.bad > 0 then os.exit(1, true) end
]]
local result = script:run { "--keep", environment = { BUDGET = 2 } }
check.equal(result.stdout, "2\t2\t2\n")
script:expect_effects("1", "2", "3", "4")
check.contains(script:run({ "--why", environment = { BUDGET = 4 } }).stdout, "HereOp #1 to #2] Kept from run")
local log, after = script:resume { environment = { BUDGET = 4 } }
check.equal(after.stdout, "0\t0\t4\n", after.stderr)
script:expect_effects("3", "4")
check.contains(log, ": 4 kept, 4 again: had failed\n")

-- Its fields.
local setting = flow.setting("verbose", false)
check.equal(setting.name, "verbose")
check.equal(setting.value, false)
check.equal(flow.setting("unset").value, nil)
check.usage(function() return setting.vale end, "a setting has no field 'vale': it has 'name' and 'value'")
check.usage(function() setting.vale = 1 end, "can't set field 'vale' of a setting")
check.usage(function() flow.setting(nil, 1) end, "bad argument #1 to 'setting' (string expected, got nil)")
check.usage(function() flow.setting("f", print) end, "bad argument #2 to 'setting'",
  "(boolean, number, string, table or nil expected, got function)")
local unset = flow.setting "unset"
unset.value = 3
check.equal(unset.value, 3)

-- A script that continues by itself says what is kept only if it executes finished ops again.
script = kept.script [[
flow.keep { resume = true }
local n = tonumber(os.getenv "N")
flow.new("f"):add(flow.op("AOp", function() return n and nil end)):add(flow.op("ZOp", function(ctx) ctx:fail "stop" end)):run()
]]
for _ = 1, 2 do check.lacks(script:run({ environment = { N = 1 } }).stderr, " kept, ") end
check.contains(script:run({ environment = { N = 2 } }).stderr, ": 0 kept, 2 again: 1 code changed (",
  ": local 'n' was 1, is 2), 1 had failed\n")
