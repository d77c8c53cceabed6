-- A trace has a slice for each undo, with its duration, its outcome and what it executes; the op itself has succeeded.
-- expect-stderr: f failed: [f/CreateOp #1] stuck
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
local undos, failures, rows = {}, {}, {}
for _, event in ipairs(flow.json.decode(run:trace()).traceEvents) do
  if event.cat == "undo" then
    undos[#undos + 1] = ("%s: %g to %g, %s %s%s"):format(event.name, event.ts / 1e6,
      (event.ts + event.dur) / 1e6, event.args.path, event.args.outcome,
      event.args.error and " " .. event.args.error or "")
    -- At one time one slice is in a row.
    local before = rows[event.tid]
    assert(not before or before <= event.ts)
    rows[event.tid] = event.ts + event.dur
  elseif event.name == "failure" then
    failures[#failures + 1] = ("%g %s: %s"):format(event.ts / 1e6, event.args.path, event.args.message)
  elseif event.cat == "op" and event.args.path:find "CreateOp" then
    check.equal(event.args.outcome, "succeeded")
  end
end
check.equal(run.error.message, "no")
check.same(undos, {
  "undo StepOp: 3 to 5, f/m/StepOp succeeded", "undo CreateOp #2: 5 to 7, f/CreateOp #2 succeeded",
  "undo CreateOp #1: 7 to 9, f/CreateOp #1 failed stuck",
})
check.same(failures, { "9 f: no", "3 f/FailOp: no", "9 f/CreateOp #1: stuck" })
-- Nobody has to look at the error of the undo: the script reports it.
os.exit(0)
