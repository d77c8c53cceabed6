-- In a kept run the writer of a stream executes again from its beginning; items that had finished and are equal don't.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
local function op(name, needs, gives, run)
  return flow.op(name, { needs = needs, gives = gives, run = run })
end
local run = flow.graph("import", { max_concurrent = 1 }):gives { sum = "integer" }
  :add(op("WriteOp", {}, { rows = "stream<integer>" }, function(ctx)
    effect "WriteOp"
    for row = 1, 4 do ctx:emit("rows", row == 2 and tonumber(os.getenv "SECOND") or row) end
  end))
  :add_grouped(op("ItemOp", { row = "integer" }, { half = "number" }, function(ctx)
    effect("ItemOp" .. ctx:get "row")
    if os.getenv "FAIL" == tostring(ctx:get "row") then error("broken", 0) end
    ctx:set("half", ctx:get "row" / 2)
  end), { input = "rows", output = "halves", as = "row", max_concurrent = 1 })
  :add(op("SumOp", { halves = "stream<number>" }, { sum = "integer" }, function(ctx)
    local sum = 0
    for half in ctx:get "halves" do sum = sum + half end
    ctx:set("sum", sum // 1 | 0)
  end))
  :add(op("ReportOp", { sum = "integer" }, {}, function(ctx) effect("ReportOp" .. ctx:get "sum") end))
  :run()
run:await()
]]

local function runs(...) return script:expect(...) end

runs(1, { "--keep", environment = { FAIL = "3", SECOND = "2" } }, "WriteOp", "ItemOp1", "ItemOp2", "ItemOp3")
-- The writer begins again; only what hadn't finished executes.
local function resume() return "--resume=" .. script:run({ "--runs" }).stdout:match "\n(r%w+)" end
local lines = runs(0, { "--resume", "--summary", environment = { SECOND = "2" } }, "WriteOp", "ItemOp3", "ItemOp4", "ReportOp5")
check.equal(lines:find("isn't kept", 1, true), nil, lines)
-- Nothing of the streams is kept, but the items are; what follows is the same.
lines = runs(0, { resume(), "--summary", environment = { SECOND = "2" } }, "WriteOp")
check.contains(lines, "Again: nothing of its streams is kept")
-- An item of other content at its place executes, and what follows from it.
runs(0, { resume(), environment = { SECOND = "20" } }, "WriteOp", "ItemOp20", "ReportOp14")
