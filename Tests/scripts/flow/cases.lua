-- The first matching case runs, and all branches join at combine().
local flow, check = require "flow", require "check"
local taken
local function step(name)
  return flow.op(name, function() taken[#taken + 1] = name end)
end
local blueprint = flow.new("plans")
  :case("plan", "pro"):add(step "ProOp"):add(step "MoreOp")
  :case(function(data) flow.sleep(0.001) return data.seats and data.seats > 5 end)
    :add(flow.new("team"):add(step "TeamOp"))
  :otherwise():add(step "FreeOp")
  :combine()
  :add(step "AfterOp")

local function run(data)
  taken = {}
  local made = blueprint:run(data)
  check.equal(made.ok, true)
  check.equal(made.finished_early, false)
  return made
end

run { plan = "pro", seats = 9 }
check.same(taken, { "ProOp", "MoreOp", "AfterOp" })
run { plan = "other", seats = 9 }
check.same(taken, { "TeamOp", "AfterOp" })
run { plan = 5 }
check.same(taken, { "FreeOp", "AfterOp" })

local labels = {}
for _, data in ipairs { { plan = "pro" }, { seats = 6 }, {} } do
  for _, event in ipairs(run(data):events()) do
    if event.kind == "case" then labels[#labels + 1] = event.op .. ": " .. event.message end
  end
end
check.same(labels, { "Cases: plan: pro", "Cases: case 2", "Cases: otherwise" })

-- A number isn't the string that it looks like.
local numbers = flow.new("numbers"):case("n", "1"):add(step "OneOp"):combine():add(step "NeverOp")
taken = {}
local early = numbers:run { n = 1 }
check.same(taken, {})
check.equal(early.ok, true)
check.equal(early.finished_early, true)
check.summary(early, [[
====== Flow Summary ======
T [DataBucket] start with:
n: 1
T [Cases] no case is matched. finished in early.
T [DataBucket] end with:
n: 1
Flow isSuccess: true
======    Ending    ======
]])

-- Inside of another flow it ends only itself.
taken = {}
local outer = flow.new("outer"):add(numbers):add(step "OuterOp"):run()
check.same(taken, { "OuterOp" })
check.equal(outer.finished_early, false)
