-- Nothing of a stream is kept: `--from` and `--only` of an op that takes its items execute its writer, too.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local prelude = [[
local function op(name, needs, gives, run)
  return flow.op(name, { needs = needs, gives = gives, run = function(ctx)
    if name ~= "ItemOp" then effect(name) end
    if os.getenv "FAIL" == name then ctx:fail "broken" end
    if run then run(ctx) end
  end })
end
local WriteOp = op("WriteOp", {}, { rows = "stream<integer>", count = "integer" }, function(ctx)
  for row = 1, 4 do ctx:emit("rows", row) end
  ctx:set("count", 4)
end)
local function sum(key) return function(ctx)
  local sum = 0
  for row in ctx:get(key) do sum = sum + row end
  ctx:set("sum", sum)
end end
local function report(needs) return op("ReportOp", needs, {}, function(ctx)
  for key in pairs(needs) do
    local value = ctx:get(key)
    effect(key .. " " .. (type(value) == "table" and table.concat(value, ",") or value))
  end
end) end
]]

-- An op reads the stream, and another one needs its result.
local script = kept.script(prelude .. [[
local import = flow.graph("import"):add(WriteOp):add(op("SumOp", { rows = "stream<integer>" }, { sum = "integer" }, sum "rows"))
  :add(report { sum = "integer", count = "integer" })
flow.new("work"):add(import):add(op "EndOp"):run()
]])
local function runs(...) return script:expect(...) end
runs(1, { "--keep", environment = { FAIL = "ReportOp" } }, "WriteOp", "SumOp", "ReportOp")
local report = { "ReportOp", "sum 10", "count 4" }
-- The run hasn't finished, but the ops of the stream have.
runs(0, { "--from", "ReportOp" }, "EndOp", table.unpack(report))
runs(0, { "--from", "SumOp" }, "WriteOp", "SumOp", "EndOp", table.unpack(report))
check.contains(runs(0, { "--only", "SumOp" }, "WriteOp", "SumOp"), "--only 'SumOp': executed 2 ops of run r", ", skipped 2\n")
check.contains(runs(0, { "--only", "import/SumOp", "--follow" }, "WriteOp", "SumOp"),
  "[WriteOp] Again: [work/import/SumOp] takes items of it")
runs(0, { "--only", "ReportOp" }, table.unpack(report))
runs(0, { "--from", "EndOp" }, "EndOp")
runs(0, { "--only", "EndOp" }, "EndOp")

-- An op gets the list.
script = kept.script(prelude .. [[
flow.graph("import"):add(WriteOp):add(op("ListOp", { rows = "integer[]" }, { sum = "integer" }, function(ctx)
  ctx:set("sum", #ctx:get "rows")
end)):add(report { sum = "integer" }):run()
]])
runs(0, { "--keep" }, "WriteOp", "ListOp", "ReportOp", "sum 4")
runs(0, { "--from", "ListOp" }, "WriteOp", "ListOp", "ReportOp", "sum 4")
runs(0, { "--only", "ListOp" }, "WriteOp", "ListOp")
runs(0, { "--only", "ReportOp" }, "ReportOp", "sum 4")

-- A group passes results on.
local function group(needs) return prelude .. ([[
local run = flow.graph("import"):add(WriteOp):add_grouped(op("ItemOp", { row = "integer" }, { half = "integer" }, function(ctx)
  effect("ItemOp" .. ctx:get "row")
  ctx:set("half", ctx:get "row" * 2)
end), { input = "rows", output = "halves", as = "row", max_concurrent = 1 })
  :add(op("SumOp", { halves = "stream<integer>" }, { sum = "integer" }, sum "halves")):add(report { %s }):run()
assert(run.ok, run.error)
]]):format(needs) end
script = kept.script(group [[sum = "integer"]])
runs(1, { "--keep", environment = { FAIL = "ReportOp" } }, "WriteOp", "ItemOp1", "ItemOp2", "ItemOp3", "ItemOp4", "SumOp",
  "ReportOp")
local plan = script:run { "--why" }
check.equal(plan.status, 0, plan.stderr)
check.contains(plan.stdout, [[
[import/WriteOp] Again: nothing of its streams is kept
[import/ItemOp] Its items aren't known before their stream is written again
[import/SumOp] Again: nothing of its streams is kept
[import/ReportOp] Again: it had failed: broken
what follows [import/ReportOp] isn't known before it has been executed
import: 3 again
]])
script:expect_effects()
runs(0, { "--from", "ReportOp" }, "WriteOp", "SumOp", "ReportOp", "sum 20")
check.equal(script:run({ "--why", "--resume=" .. script:run({ "--runs" }).stdout:match "\n(r%w+)" }).status, 0)
runs(0, { "--from", "SumOp" }, "WriteOp", "SumOp", "ReportOp", "sum 20")
runs(0, { "--from", "ItemOp #3" }, "WriteOp", "ItemOp3", "ItemOp4", "SumOp", "ReportOp", "sum 20")
runs(0, { "--only", "ItemOp #2" }, "WriteOp", "ItemOp2")
runs(0, { "--only", "SumOp" }, "WriteOp", "SumOp")
runs(0, { "--only", "ReportOp" }, "ReportOp", "sum 20")
runs(0, { "--only", "WriteOp" }, "WriteOp")
-- An op needs a list of the results.
script = kept.script(group [[halves = "integer[]"]])
local list = "halves 2,4,6,8"
runs(0, { "--keep" }, "WriteOp", "ItemOp1", "ItemOp2", "ItemOp3", "ItemOp4", "SumOp", "ReportOp", list)
runs(0, { "--only", "ReportOp" }, "WriteOp", "ReportOp", list)
runs(0, { "--only", "SumOp" }, "WriteOp", "SumOp")
runs(0, { "--from", "ReportOp" }, "WriteOp", "SumOp", "ReportOp", list)

-- The graph gives the list to an op elsewhere, for which its writer isn't executed.
script = kept.script(prelude .. [[
flow.new("work"):add(flow.graph("import"):gives { rows = "integer[]" }:add(WriteOp))
  :add(op("ListOp", { rows = "integer[]" }, { sum = "integer" }, function(ctx) ctx:set("sum", #ctx:get "rows") end))
  :add(report { sum = "integer" }):run()
]])
runs(0, { "--keep" }, "WriteOp", "ListOp", "ReportOp", "sum 4")
check.contains(runs(1, { "--only", "ListOp" }), "--only 'ListOp' has executed nothing: what follows [work/ListOp] isn't known "
  .. "(it takes items of a stream, of which nothing is kept; --from executes its writer, too)")
runs(0, { "--only", "ReportOp" }, "ReportOp", "sum 4")
runs(0, { "--from", "ListOp" }, "WriteOp", "ListOp", "ReportOp", "sum 4")

-- A writer with an effect that must not happen twice asks.
script = kept.script(prelude .. [[
flow.graph("import"):add(WriteOp:with { effect = "once" })
  :add(op("SumOp", { rows = "stream<integer>" }, { sum = "integer" }, sum "rows")):add(report { sum = "integer" }):run()
]])
runs(0, { "--keep" }, "WriteOp", "SumOp", "ReportOp", "sum 10")
for _, choice in ipairs { "--from", "--only" } do
  check.contains(runs(75, { choice, "SumOp" }, "SumOp"), "[import/WriteOp] had finished in run r", "again or fail?")
end
runs(0, { "--only", "SumOp", "--settle", "WriteOp=again" }, "WriteOp", "SumOp")
runs(0, { "--from", "ReportOp" }, "ReportOp", "sum 10")
