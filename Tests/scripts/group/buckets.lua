-- Each item has its own bucket, which reads the flow's data and writes only to itself.
local flow, check = require "flow", require "check"
local AOp = flow.op("AOp", {
  needs = { item = "integer" }, gives = { result = "string" },
  run = function(ctx)
    check.equal(ctx:get("shared"), "of the flow")
    check.equal(ctx:has("mine"), false)
    ctx:set("mine", ctx.index)
    ctx:set("shared", "of item " .. ctx.index)
    flow.sleep(0.001)
    check.equal(ctx:get("mine"), ctx.index)
    ctx:set("result", ctx:get("shared"))
  end,
})
local run = flow.new("buckets"):data { list = { 1, 2, 3 }, shared = "of the flow" }
  :add_grouped(AOp, { input = "list", output = "out" }):run()
assert(run.ok, run.error)
check.same(run.data.out, { "of item 1", "of item 2", "of item 3" })
check.equal(run.data.shared, "of the flow")
check.equal(run.data.mine, nil)
check.equal(run.data.item, nil)
check.equal(run.data.result, nil)
