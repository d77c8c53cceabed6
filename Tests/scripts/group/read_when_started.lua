-- An item is read when it starts: what an item before it has changed in the list counts.
local flow, check = require "flow", require "check"
local ItemOp = flow.op("ItemOp", {
  needs = { item = "any", items = "any" }, gives = { same = "any" },
  run = function(ctx)
    local items = ctx:get("items")
    if ctx.index == 1 then items[2], items[3], items[4], items[70] = "other", 2.5, false, { 7 } end
    ctx:set("same", ctx:get("item"))
  end,
})
local items = {}
for i = 1, 70 do items[i] = i end
local run = flow.new("changing"):data { items = items }
  :add_grouped(ItemOp, { input = "items", as = "item", output = "out", max_concurrent = 1 }):run()
assert(run.ok, run.error)
local out = run.data.out
check.equal(#out, 70)
check.equal(out[1], 1)
check.equal(out[2], "other")
check.equal(out[3], 2.5)
check.equal(out[4], false)
check.equal(out[5], 5)
check.equal(out[70][1], 7)
