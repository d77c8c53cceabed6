-- A flow that fails undoes what had succeeded, the last first, before its final steps.
local flow, check = require "flow", require "check"

local undone = {}
local function op(name, fails)
  return flow.op(name, {
    run = function(ctx)
      flow.sleep(0.001)
      if fails then ctx:fail("boom") end
      ctx:set(name, "made")
    end,
    undo = function(ctx)
      flow.sleep(0.001)
      undone[#undone + 1] = ctx.name
      ctx:log(ctx:get(name, "string"), "at", ctx.attempt, tostring(ctx.error.message))
      ctx:set(name, nil)
    end,
  })
end
local CloseOp = flow.op("CloseOp", function(ctx) ctx:log("closes after", ctx.error) end)

local run = flow.new("f"):add(op "AOp"):add(op "BOp"):add(op("COp", true)):add(op "DOp")
  :add_finally(CloseOp):run()
check.equal(run.error.message, "boom")
check.same(undone, { "BOp", "AOp" })
check.contains(check.masked(run:summary()), [[
T [COp] DidFinish: withError: boom
T [BOp] made at 1 boom
T [DataBucket] remove for BOp
T [BOp] Undo: successfully
T [AOp] made at 1 boom
T [DataBucket] remove for AOp
T [AOp] Undo: successfully
T [CloseOp] WillStart
]])
local kinds = {}
for _, event in ipairs(run:events()) do
  if event.kind == "undo" then kinds[#kinds + 1] = event.op .. " " .. event.message end
end
check.same(kinds, { "BOp successfully", "AOp successfully" })
check.equal(run.data.AOp, nil)

-- Nothing is undone after a success, and an op that fails isn't undone itself.
undone = {}
assert(flow.new("f"):add(op "AOp"):add(op "BOp"):run().ok)
check.equal(op("COp", true):run().error.message, "boom")
check.equal(op("AOp"):run().ok, true)
check.same(undone, {})
