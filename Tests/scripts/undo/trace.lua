-- A trace marks what was undone, and when; the op itself has succeeded.
local flow, check = require "flow", require "check"

local CreateOp = flow.op("CreateOp", {
  run = function() flow.sleep(1) end,
  undo = function(ctx)
    flow.sleep(2)
    if ctx.index == 1 then ctx:fail "stuck" end
  end,
})
local StepOp = CreateOp:with { name = "StepOp" }
local run = flow.new("f"):add_grouped(CreateOp, { input = "list", as = "item", max_concurrent = 1 })
  :add(flow.machine { name = "m", start = "a", flow.step("a", { run = StepOp }) })
  :add(flow.op("FailOp", function(ctx) ctx:fail "no" end))
  :run { list = { "a", "b" } }
local marks = {}
for _, event in ipairs(flow.json.decode(run:trace()).traceEvents) do
  if event.name == "undo" then
    marks[#marks + 1] = ("%g %s: %s"):format(event.ts, event.args.path, event.args.message)
  end
end
check.equal(run.error.message, "no")
check.same(marks, {
  "5e+06 f/m: successfully", "7e+06 f/CreateOp #2: successfully",
  "9e+06 f/CreateOp #1: withError: stuck",
})
-- Nobody has to look at the error of the undo: the script reports it.
os.exit(0)
