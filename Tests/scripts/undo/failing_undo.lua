-- An undo that fails doesn't keep the others from executing; its error is reported when the script ends.
-- expect-status: 1
-- expect-stderr: [f/BOp] can't remove it
local flow, check = require "flow", require "check"

local undone = {}
local function op(name, undo)
  return flow.op(name, { run = function() end, undo = undo })
end
local function note(ctx) undone[#undone + 1] = ctx.name end
local run = flow.new("f")
  :add(op("AOp", note))
  :add(op("BOp", function(ctx)
    ctx:defer(function() ctx:log("deferred") end)
    flow.sleep(0.01)
    ctx:fail("can't remove it")
  end))
  :add(op("COp", note))
  :add(flow.op("FailOp", function(ctx) ctx:fail("boom") end))
  :run()
check.equal(run.error.message, "boom")
check.same(undone, { "COp", "AOp" })
check.contains(check.masked(run:summary()), [[
T [BOp] deferred
T [BOp] Undo: withError: can't remove it
T [AOp] Undo: successfully
]])
