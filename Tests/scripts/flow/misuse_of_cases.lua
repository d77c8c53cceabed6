-- Cases, otherwise and combine in the wrong place or with wrong values are errors.
local flow, check = require "flow", require "check"
local AnOp = flow.op("AnOp", function() end)
local function cases() return flow.new("misuse"):case("plan", "pro"):add(AnOp) end

for _, value in ipairs { 5, 1.5, true, {}, print } do
  check.usage(function() flow.new("f"):case("plan", value) end, "'case'", "#2", "string", type(value))
end
check.usage(function() flow.new("f"):case("plan") end, "'case'", "#2", "string", "no value")
check.usage(function() flow.new("f"):case() end, "'case'", "#1", "string or function", "no value")
check.usage(function() flow.new("f"):case(5, "pro") end, "'case'", "#1", "string or function", "number")
check.usage(function() flow.new("f"):case({ "plan" }, "pro") end, "'case'", "#1", "table")
check.usage(function() flow.new("f"):case(print, "pro") end, "'case'", "#2", "predicate takes no value")

check.usage(function() flow.new("f"):combine() end, "'combine'", "without a case")
check.usage(function() flow.new("f"):add(AnOp):combine() end, "'combine'", "without a case")
check.usage(function() cases():combine():combine() end, "'combine'", "without a case")
check.usage(function() flow.new("f"):otherwise() end, "'otherwise'", "without a case")
check.usage(function() cases():combine():otherwise() end, "'otherwise'", "without a case")
check.usage(function() cases():otherwise():otherwise() end, "'otherwise'", "twice")
check.usage(function() cases():otherwise():case("a", "b") end, "'case'", "after otherwise()")
check.usage(function() cases():otherwise():case(print) end, "'case'", "after otherwise()")

-- The refused calls have changed nothing.
local blueprint = cases()
assert(not pcall(blueprint.case, blueprint, "plan", 5))
assert(not pcall(blueprint.add, blueprint, 5))
blueprint:otherwise():add(AnOp)
assert(not pcall(blueprint.otherwise, blueprint))
assert(not pcall(blueprint.case, blueprint, "plan", "x"))
local starts = 0
for _, event in ipairs(blueprint:combine():run { plan = "x" }:events()) do
  if event.kind == "start" then starts = starts + 1 end
end
check.equal(starts, 1)
