-- A dispatcher's limits and its list are checked.
local flow, check = require "flow", require "check"
local ItemOp = flow.op("ItemOp", { needs = { item = "any" }, gives = { out = "any" },
  run = function(ctx) ctx:set("out", ctx:get("item")) end })

for _, value in ipairs { 0, -1, 1.5, 0 / 0, math.huge } do
  check.usage(function() flow.dispatcher { input = "items", max_concurrent = value } end,
    "'dispatcher'", "'max_concurrent'", "integer of at least 1")
end
for _, value in ipairs { "3", true, {} } do
  check.usage(function() flow.dispatcher { input = "items", max_concurrent = value } end,
    "'dispatcher'", "'max_concurrent'", type(value))
end

local function group(items, limit)
  return flow.new("f"):add_grouped(ItemOp, { input = "items", output = "outs", max_concurrent = limit })
    :run { items = items }
end
check.same(group({ 1, 2, 3 }, 1 << 62).data.outs, { 1, 2, 3 })
check.same(group({ 1, 2, 3 }, 2.0).data.outs, { 1, 2, 3 })

-- A string, a table with holes and one with keys are no lists.
for _, items in ipairs { "abc", 5, true, coroutine.create(print), { 1, nil, 3 }, { a = 1 }, { 1, 2, x = 3 }, { [0] = 1 } } do
  local run = group(items)
  check.equal(run.ok, false)
  check.equal(run.error.kind, "mismatched_input")
  check.equal(run.error.op, "Group")
  check.contains(run.error.message, "<items> in data bucket is <", "but NOT type <")
end
check.equal(group(nil).error.kind, "insufficient_input")
check.equal(group({}).error.kind, "insufficient_input")
