-- The ops of a machine's steps are undone when the machine fails, or the flow that it is a step of.
local flow, check = require "flow", require "check"
local forward = flow.forward

local undone
local function op(name, fails)
  return flow.op(name, {
    run = function(ctx)
      ctx:set("step", name)
      if fails then ctx:fail("boom") end
    end,
    undo = function(ctx)
      ctx:log("undoing", ctx:get("step"))
      undone[#undone + 1] = name .. " " .. ctx:get("step") .. " " .. ctx.error.message
    end,
  })
end
local function machine(last)
  return flow.machine {
    name = "m", start = "a",
    flow.step("a", { run = op "AOp", flow.next(forward "b") }),
    flow.step("b", { run = flow.new("steps"):add(op "BOp"):add(op "B2Op"), flow.next(forward "c") }),
    flow.step("c", { run = last }),
  }
end

undone = {}
local run = machine(op("COp", true)):run()
check.equal(run.error.message, "boom")
check.same(undone, { "B2Op B2Op boom", "BOp B2Op boom", "AOp AOp boom" })
check.contains(check.masked(run:summary()), [[
T [B2Op] undoing B2Op
T [B2Op] Undo: successfully
T [BOp] undoing B2Op
T [BOp] Undo: successfully
T [AOp] undoing AOp
T [AOp] Undo: successfully
]])

undone = {}
assert(machine(op("COp")):run().ok)
check.same(undone, {})
run = flow.new("f"):add(op "FirstOp"):add(machine(op "COp")):add(op("FailOp", true)):run()
check.equal(run.ok, false)
check.same(undone, {
  "COp COp boom", "B2Op B2Op boom", "BOp B2Op boom", "AOp AOp boom", "FirstOp FailOp boom",
})

-- A machine within a machine, whose attempt fails.
undone = {}
local tries = 0
local outer = flow.machine {
  name = "outer", start = "inner", retry = 2,
  flow.step("inner", { run = machine(op "COp"), flow.next(forward "check") }),
  flow.step("check", { run = flow.op("CheckOp", function(ctx)
    tries = tries + 1
    if tries == 1 then ctx:fail("once") end
  end) }),
}
assert(outer:run().ok)
check.same(undone, { "COp COp once", "B2Op B2Op once", "BOp B2Op once", "AOp AOp once" })
